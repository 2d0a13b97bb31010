// --plot FILE: the figure of a document as a file of its own.
#pragma once

#include "experiments/command.hpp"

namespace flashbound {

// Where the option is given. Throws like AtomicFile.
void add_plot_file(const Options& options, Outcome& outcome);

}  // namespace flashbound
