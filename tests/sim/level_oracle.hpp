// One set-associative level as a textbook draws it: sets of ways with time stamps, searched from
// end to end.
#pragma once

#include "sim/memory_levels.hpp"

#include <vector>

namespace flashbound {

struct OracleAccess {
  Index line = 0;
  std::size_t tensor = 0;
  bool write = false;
};

// Fills `result`, whose tensors are named, and returns what goes to the next level.
std::vector<OracleAccess> level_by_brute_force(const CacheLevel& level,
                                               const std::vector<OracleAccess>& stream,
                                               LevelResult& result);

}  // namespace flashbound
