// Counts of accesses and misses, as cachegrind's summary has them.
#pragma once

#include "core/int128.hpp"

#include <map>
#include <string>

namespace flashbound {

struct CachegrindCount {
  Index accesses = 0;
  Index first_misses = 0;  // in the first level
  Index last_misses = 0;   // in the last
  friend bool operator==(const CachegrindCount&, const CachegrindCount&) = default;
};

struct CachegrindCounts {
  CachegrindCount instructions{};
  CachegrindCount reads{};
  CachegrindCount writes{};
  friend bool operator==(const CachegrindCounts&, const CachegrindCounts&) = default;
};

// Misses in the last level while attention runs, by array: reads of q, k and v, writes of o and
// lse, both of the scratch arrays.
using ArrayMisses = std::map<std::string, Index>;

struct ReplayCounts {
  CachegrindCounts all{};
  ArrayMisses arrays{};
};

}  // namespace flashbound
