// Random traces of many kinds.
#pragma once

#include "sim/access_trace.hpp"

#include <random>
#include <vector>

namespace flashbound {

enum class TraceKind { uniform, skewed, cycle, sawtooth, phases };
inline constexpr TraceKind kTraceKinds[] = {TraceKind::uniform, TraceKind::skewed, TraceKind::cycle,
                                            TraceKind::sawtooth, TraceKind::phases};

// `touches` units below `units`, in an order of the kind.
std::vector<std::uint32_t> touched_units(std::mt19937_64& random, TraceKind kind, Index units,
                                         Index touches);

// Reads and writes of up to `units_max` lines of two tensors.
AccessTrace random_trace(std::mt19937_64& random, Index units_max, Index accesses_max);

// The same of tiles of one to five lines.
AccessTrace random_tiles(std::mt19937_64& random, Index units_max, Index accesses_max);

}  // namespace flashbound
