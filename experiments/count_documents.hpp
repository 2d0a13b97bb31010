// What count writes besides its rows: a program and its event log.
#pragma once

#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/programs.hpp"
#include "experiments/command.hpp"

namespace flashbound {

// --program-out and --record-out of `algorithm`, for the first sequence of the problem. Adds the
// files to the outcome, which commits them. Throws ConfigError when the log would be too long.
void write_count_documents(const Options& options, const Algorithm& algorithm,
                           const Problem& problem, const Tile& tile, NumberFormat dtype,
                           Outcome& outcome);

}  // namespace flashbound
