// What the simulator says of tiled_program: core's flash2 program gives the moves and computations
// in order, the arrays' addresses give the lines, and two caches in a row give the misses.
//
// A move touches source and destination element by element, a computation each line of its tiles
// once. The model knows no stack, no code, no tables of exp and log, and no second touch of a line
// within one computation. Writes count as reads, as in cachegrind, which has no write-backs.
#pragma once

#include "experiments/cachegrind/cachegrind_counts.hpp"
#include "experiments/cachegrind/tiled_run.hpp"

namespace flashbound {

// In the given last level behind run.data. What came before attention is in the caches: q, k and v
// were filled. Throws ConfigError for a run without one of the arrays, and as validate(levels)
// does.
ArrayMisses modelled_misses(const TiledRun& run, const CacheLevel& last);

}  // namespace flashbound
