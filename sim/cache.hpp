// One cache, access by access: what it holds, what it counts, what it asks of the next memory.
// memory_levels.hpp runs a row of them over a whole trace.
#pragma once

#include "sim/cache_level.hpp"
#include "sim/level_traffic.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace flashbound {

struct LineAccess {
  std::uint32_t line = 0;  // by address: line mod sets is its set
  std::uint8_t tensor = 0;
  bool write = false;
};

// `Victims` decides which line leaves (victims.hpp); only LatestVictims looks at next_use.
template <class Victims>
class Cache {
 public:
  // For a validated level and lines below `lines`. Counts go to `result`, which has the tensors,
  // and accesses of the next memory to `onward`; all three outlive the cache.
  Cache(const CacheLevel& level, Victims victims, std::size_t lines, LevelResult& result,
        std::vector<LineAccess>& onward)
      : level_(level),
        victims_(std::move(victims)),
        sets_(static_cast<std::uint32_t>(level.sets())),
        ways_(static_cast<std::uint32_t>(level.set_ways())),
        slot_of_(lines, kNoSlot),
        held_(static_cast<std::size_t>(level.sets() * level.set_ways())),
        used_(static_cast<std::size_t>(level.sets()), 0),
        result_(result),
        onward_(onward) {}

  // Whether it hit. `next_use` is when the line is accessed next, the greatest number if never.
  bool access(const LineAccess& access, std::uint32_t next_use = 0) {
    LevelTraffic& traffic = of(access);
    std::uint32_t slot = slot_of_[access.line];
    const bool hit = slot != kNoSlot;
    ++(access.write ? hit ? traffic.write_hits : traffic.write_misses
       : hit        ? traffic.read_hits
                    : traffic.read_misses);
    if (hit) {
      victims_.hit(slot, next_use);
    } else {
      if (access.write && level_.write_miss == WriteMiss::around) {
        ++traffic.writes_around;
        onward_.push_back(access);
        return false;
      }
      slot = place(access.line);
      held_[slot] = {access.line, access.tensor, false};
      victims_.enter(slot, next_use);
      if (!access.write || level_.write_miss == WriteMiss::fetch) fill(access);
    }
    if (access.write) write(access, held_[slot]);
    return hit;
  }

  // Writes every dirty line back, in the order of their slots.
  void flush() {
    for (Held& held : held_) {
      if (held.dirty) write_back(held);
    }
  }

 private:
  static constexpr std::uint32_t kNoLine = 0xffffffff;
  static constexpr std::uint32_t kNoSlot = 0xffffffff;

  struct Held {
    std::uint32_t line = kNoLine;
    std::uint8_t tensor = 0;
    bool dirty = false;
  };

  LevelTraffic& of(const LineAccess& access) { return result_.tensors[access.tensor]; }

  // A free slot of the line's set, or one whose line leaves.
  std::uint32_t place(std::uint32_t line) {
    const std::uint32_t set = line % sets_;
    std::uint32_t slot = set * ways_ + used_[set];
    if (used_[set] < ways_) {
      ++used_[set];
    } else {
      slot = victims_.victim(set);
      slot_of_[held_[slot].line] = kNoSlot;
      if (held_[slot].dirty) write_back(held_[slot]);
    }
    slot_of_[line] = slot;
    return slot;
  }

  void fill(const LineAccess& access) {
    ++of(access).fills;
    onward_.push_back({access.line, access.tensor, false});
  }

  void write(const LineAccess& access, Held& held) {
    if (!level_.write_through) {
      held.dirty = true;
      return;
    }
    ++of(access).write_throughs;
    onward_.push_back(access);
  }

  void write_back(Held& held) {
    ++result_.tensors[held.tensor].write_backs;
    onward_.push_back({held.line, held.tensor, true});
    held.dirty = false;
  }

  const CacheLevel& level_;
  Victims victims_;
  std::uint32_t sets_;
  std::uint32_t ways_;
  std::vector<std::uint32_t> slot_of_;  // by line
  std::vector<Held> held_;              // by slot
  std::vector<std::uint32_t> used_;     // by set: slots that hold something
  LevelResult& result_;
  std::vector<LineAccess>& onward_;
};

}  // namespace flashbound
