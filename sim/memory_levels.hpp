// Caches in a row: what misses in one is an access of the next, and what leaves the last crosses to
// HBM. Level n + 1 sees, in order, the fills of level n as reads and its write-backs,
// write-throughs and writes around as writes, of the lines they lie in. Where lines grow outward, a
// write of a short line counts as one of the whole long line: let outer levels fetch on a write
// miss unless programs write whole long lines. Nothing makes a level hold what another holds (no
// inclusion, no exclusion). At the end dirty lines are written back, nearest level first, in the
// order of their slots.
#pragma once

#include "sim/access_trace.hpp"
#include "sim/cache_level.hpp"
#include "sim/level_traffic.hpp"

#include <span>
#include <vector>

namespace flashbound {

enum class Flush { at_the_end, never };

// Results nearest level first. Units of the trace are lines of the first level's size, numbered by
// address, so that line mod sets is the set. Throws ConfigError as validate(levels) does, and for a
// trace of tiles, with repeats, of another line size or of over 2^31 accesses at any level.
std::vector<LevelResult> simulate_levels(std::span<const CacheLevel> levels,
                                         const AccessTrace& trace, Flush flush = Flush::at_the_end);

}  // namespace flashbound
