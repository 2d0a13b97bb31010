// The capacity curve of a trace, from one pass: every access's stack distance, counted.
#pragma once

#include "sim/access_trace.hpp"
#include "sim/capacity_curve.hpp"

namespace flashbound {

// Exact for every capacity. Tiles (unit_lines) count with all their lines; for OPT, which may keep
// a part of a tile, they are taken apart into lines. Throws ConfigError for repeats under OPT,
// whose distances have no steady state that one run of a loop would show, and for traces beyond
// memory: 2^29 units under LRU, 2^31 line accesses under OPT.
CapacityCurve stack_curve(const AccessTrace& trace, StackPolicy policy);

// The trace with every tile as its lines, in order. It has no repeats.
AccessTrace in_lines(const AccessTrace& trace);

}  // namespace flashbound
