// What a numeric run counts beside its results.
#pragma once

#include "core/int128.hpp"

namespace flashbound {

// What happened to results of whole tiles (weights, factors, stored tensors, operands), not to
// every product and partial sum within a matrix product: those show as outputs that are not finite,
// or in a format that saturates only as errors.
struct RangeEvents {
  Index overflows = 0;   // finite before rounding, beyond the format's largest number after
  Index underflows = 0;  // not zero before rounding (or flushing), zero after
};

// Counted for rows that had seen a key (or a sink), at every update of their maximum.
struct RescaleCount {
  Index done = 0;     // a factor multiplied their accumulators
  Index skipped = 0;  // they were left alone
};

}  // namespace flashbound
