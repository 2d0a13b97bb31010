// Every algorithm, written once as a program. Sources are named in each file of core/programs/.
#pragma once

#include "core/problem.hpp"
#include "core/program.hpp"

#include <span>
#include <string_view>

namespace flashbound {

Program standard_program();
Program standard_tiled_program();
Program rabe_staats_program();
Program flash1_program();
Program flash1_charged_start_program();
Program flash1_skip_first_read_program();
Program flash2_program();
Program split_kv_program();
Program small_cache_program();
Program small_cache_spill_both_program();
Program standard_backward_program();
Program flash1_backward_program();
Program flash2_backward_program();

struct Algorithm {
  std::string_view name;    // as on the command line
  std::string_view title;   // one line
  std::string_view source;  // publication and algorithm number
  Program (*program)();
  Pass pass = Pass::forward;
};

// All algorithms: those of the forward pass, then those of the backward pass, each in the order of
// their publication.
std::span<const Algorithm> algorithms();
std::span<const Algorithm> algorithms(Pass pass);
// Throws ConfigError listing the names when there is no such algorithm.
const Algorithm& algorithm_named(std::string_view name);

}  // namespace flashbound
