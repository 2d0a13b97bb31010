// Which files a run reads and writes.
#pragma once

#include "experiments/options.hpp"

namespace flashbound {

// Throws ConfigError when two outputs, or an output and an input, are the same file.
void require_distinct_paths(const Options& options);

}  // namespace flashbound
