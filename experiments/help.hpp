// --help and the man page, from the option table.
#pragma once

#include "experiments/option_table.hpp"

#include <string>

namespace flashbound {

// The command's verbs, one line each, and exit codes.
std::string command_help();
// One verb: purpose, usage, options with defaults, examples, exit codes.
std::string verb_help(const VerbText& verb);
// All of these.
std::string full_help();
// Section 1 of the manual, in roff.
std::string man_page();

}  // namespace flashbound
