// An LRU cache of every capacity the slow way, to check traces with: a list of units in order of
// their last access, searched from the front.
#pragma once

#include "sim/access_trace.hpp"
#include "sim/capacity_curve.hpp"

namespace flashbound::testing {

// Whole-tile units move as one: each of their lines has the same distance. Accesses in a repeat
// count `times` times: their distances, first touches, rewrites and first writes. Time is the
// product of accesses and units.
CapacityCurve lru_by_hand(const AccessTrace& trace);

}  // namespace flashbound::testing
