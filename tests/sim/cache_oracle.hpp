// Caches as a textbook has them, one capacity at a time: lists and scans, nothing shared with sim.
#pragma once

#include "sim/access_trace.hpp"
#include "sim/capacity_curve.hpp"

#include <vector>

namespace flashbound {

// What a fully associative cache of `lines` lines moves, dirty lines written back at the end. Units
// of the trace are lines.
std::vector<CacheTraffic> cache_by_brute_force(const AccessTrace& trace, StackPolicy policy,
                                               Index lines);

// For each access the number of distinct units since the same one, itself included, by counting.
std::vector<Index> distances_by_brute_force(const AccessTrace& trace);

}  // namespace flashbound
