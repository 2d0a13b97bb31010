// Stack distances under LRU of tiles: units of several lines that are always touched together and
// in one order, so that all lines of a tile share one distance. While its i-th line is touched
// again, the lines since are those of other tiles, the rest of this one from last time and the
// first i of it now: the tile's own lines once.
#pragma once

#include "core/int128.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace flashbound {

class WeightedLruStack {
 public:
  // `lines` by unit, at least 1 each; views nothing afterwards. Throws ConfigError for so many
  // lines that a distance does not fit in 63 bits.
  explicit WeightedLruStack(std::span<const std::uint32_t> lines);

  // Lines of the units touched since this one was touched last, its own included; 0 at the first
  // touch.
  Index touch(std::uint32_t unit);

 private:
  void compact();
  void add(std::size_t time, Index lines);
  Index lines_from(std::size_t time) const;

  std::vector<std::uint32_t> unit_lines_;
  std::vector<std::uint32_t> last_;  // time of each unit's last touch
  std::vector<std::uint32_t> at_;    // by time: lines of the unit touched last then, else 0
  std::vector<Index> group_sums_;    // Fenwick tree over groups of times
  std::size_t now_ = 0;
  Index live_ = 0;  // lines of all units touched so far
  // Of the touch before: where its unit had been, and its distance.
  std::size_t run_end_ = 0;
  Index run_distance_ = 0;
};

}  // namespace flashbound
