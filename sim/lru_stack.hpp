// Stack distances under LRU, one unit after another. A unit's last touch is a set bit on a
// timeline, so that a distance is a count of set bits; counts are kept for groups of words, and the
// timeline is compacted when it is full. (The tree of Bennett and Kruskal 1975 over time, with 64
// leaves a word and 16 children a node.)
#pragma once

#include "core/int128.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace flashbound {

class LruStack {
 public:
  // Units are 0 to units - 1; memory is about 7 bytes a unit.
  explicit LruStack(Index units);

  // Units touched since this one was touched last, itself included: the least capacity that holds
  // it. 0 at the first touch.
  std::uint32_t touch(std::uint32_t unit) {
    const std::uint32_t before = last_[unit];
    last_[unit] = now_;
    // The unit touched right after the previous one was touched last, as in a repeated run: what
    // that one left at the old end came back at the new one, so that the distance is the same.
    if (before == run_end_ && now_ != word_end_) {
      ++run_end_;
      ++now_;
      return run_distance_;
    }
    return touch_apart(unit, before);
  }

  // The unit will be touched soon.
  void prefetch(std::uint32_t unit) const { __builtin_prefetch(&last_[unit], 1); }

 private:
  static constexpr std::uint32_t kNever = 0xffffffff;
  static constexpr std::uint32_t kNoRun = 0xfffffffe;
  static constexpr std::size_t kFanout = 16;
  static constexpr std::size_t kLevels = 3;  // of nodes above the words and below the top

  std::uint32_t touch_apart(std::uint32_t unit, std::uint32_t before);
  void settle();
  void compact();
  void enter_word();
  std::uint32_t bits_before(std::uint32_t time) const;
  std::uint32_t bits_in(std::size_t level, std::size_t child) const;
  void set(std::uint32_t begin, std::uint32_t end);
  void clear(std::uint32_t begin, std::uint32_t end);

  std::vector<std::uint32_t> last_;  // time of each unit's last touch
  std::vector<std::uint64_t> bits_;  // by time: whether a unit was touched last then
  // By level and child: set bits in the children of the same parent before it. The last level has
  // one parent. Children after the one that holds `now_` are not filled in yet.
  std::array<std::vector<std::uint32_t>, kLevels + 1> before_;
  std::uint32_t length_ = 0;  // of the timeline
  std::uint32_t now_ = 0;
  std::uint32_t word_end_ = 0;  // first time of the next word
  std::uint32_t live_ = 0;      // units touched so far
  // The touches of the current run, not in bits_ yet: those that were at [run_begin_, run_end_)
  // came to the run_end_ - run_begin_ times before now_.
  std::uint32_t run_begin_ = kNoRun;
  std::uint32_t run_end_ = kNoRun;
  std::uint32_t run_distance_ = 0;
};

}  // namespace flashbound
