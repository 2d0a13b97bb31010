// Which way of a set leaves, by policy. Slots are numbered set by set.
#pragma once

#include "sim/cache_level.hpp"

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace flashbound {

// LRU and FIFO: a list a set, the next to leave first.
class ListVictims {
 public:
  ListVictims(Index sets, Index ways, bool move_on_hit);
  void enter(std::uint32_t slot, std::uint32_t next_use);
  void hit(std::uint32_t slot, std::uint32_t next_use);
  std::uint32_t victim(std::uint32_t set) const { return after_[first_of(set)]; }

 private:
  // Each set's list is a ring through a slot of its own, behind all others.
  std::uint32_t first_of(std::uint32_t set) const { return slots_ + set; }
  void unlink(std::uint32_t slot);
  void append(std::uint32_t slot);

  std::uint32_t slots_;
  std::uint32_t ways_;
  bool move_on_hit_;
  std::vector<std::uint32_t> after_, before_;
};

class RandomVictims {
 public:
  RandomVictims(Index ways, std::uint64_t seed);
  void enter(std::uint32_t, std::uint32_t) {}
  void hit(std::uint32_t, std::uint32_t) {}
  std::uint32_t victim(std::uint32_t set);

 private:
  std::uint32_t ways_;
  std::mt19937_64 random_;
};

// Node n of a set's tree has the children 2 n and 2 n + 1, the root is 1; a set bit sends the
// search for a victim to the second.
class TreeVictims {
 public:
  TreeVictims(Index sets, Index ways);
  void enter(std::uint32_t slot, std::uint32_t next_use) { hit(slot, next_use); }
  void hit(std::uint32_t slot, std::uint32_t next_use);
  std::uint32_t victim(std::uint32_t set) const;

 private:
  std::uint32_t ways_;
  std::vector<std::uint8_t> second_;  // by set and node
};

// OPT: a heap a set of when slots are used next; entries that a later access made stale are dropped
// when they surface. Of lines that are never used again the one in the lowest slot leaves.
class LatestVictims {
 public:
  LatestVictims(Index sets, Index ways);
  void enter(std::uint32_t slot, std::uint32_t next_use) { hit(slot, next_use); }
  void hit(std::uint32_t slot, std::uint32_t next_use);
  std::uint32_t victim(std::uint32_t set);

 private:
  std::uint32_t ways_;
  std::vector<std::uint32_t> next_use_;  // by slot
  // (next use, complement of the slot)
  std::vector<std::priority_queue<std::pair<std::uint32_t, std::uint32_t>>> heaps_;
};

}  // namespace flashbound
