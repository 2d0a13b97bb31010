// The OPT stack. Position i holds the line that a cache of i lines has and one of i - 1 has not. An
// access of the line at position p takes it to the top; each smaller cache lets go of its line
// whose next use is furthest, so that what is the latest of positions 1 to i moves down to the next
// position whose line is used later still, and the last of these to p.
#include "sim/opt_distances.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace flashbound {
namespace {

constexpr std::size_t kFanout = 16;
constexpr std::size_t kShift = 4;
constexpr std::size_t kLevels = 8;  // 16^8 positions
constexpr std::uint32_t kNever = 0xffffffff;
constexpr std::uint64_t kMovesFree = std::uint64_t{1} << 20;

// Next uses by position, with the latest of every 16 children, so that the next position whose line
// is used later than a given time is found in a few steps.
class LatestTree {
 public:
  explicit LatestTree(std::size_t positions) {
    std::size_t size = positions;
    for (std::size_t level = 0; level < kLevels; ++level) {
      size = size / kFanout + 1;
      levels_[level].assign(size * kFanout, 0);
      if (size == 1) {
        top_ = level;
        break;
      }
    }
  }

  std::uint32_t at(std::size_t position) const { return levels_[0][position]; }

  void set(std::size_t position, std::uint32_t value) {
    std::size_t child = position;
    for (std::size_t level = 0;; ++level) {
      const std::uint32_t before = std::exchange(levels_[level][child], value);
      if (level == top_) return;
      const std::size_t parent = child >> kShift;
      const std::uint32_t latest = levels_[level + 1][parent];
      if (value < latest && before < latest) return;
      if (value < latest) value = latest_of(level, parent);
      if (value == latest) return;
      child = parent;
    }
  }

  // The first position in (from, end) whose value is above `value`, else end.
  std::size_t next_above(std::size_t from, std::size_t end, std::uint32_t value) const {
    std::size_t child = from + 1;
    std::size_t level = 0;
    while (true) {
      const std::size_t stop = (child / kFanout + 1) * kFanout;
      while (child < stop && levels_[level][child] <= value) ++child;
      if ((child << (level * kShift)) >= end) return end;
      if (child < stop) break;
      if (level == top_) return end;
      child >>= kShift;
      ++level;
    }
    while (level > 0) {
      --level;
      child <<= kShift;
      while (levels_[level][child] <= value) ++child;
    }
    return std::min(child, end);
  }

 private:
  std::uint32_t latest_of(std::size_t level, std::size_t parent) const {
    const auto first = levels_[level].begin() + static_cast<std::ptrdiff_t>(parent * kFanout);
    return *std::max_element(first, first + kFanout);
  }

  std::array<std::vector<std::uint32_t>, kLevels> levels_;
  std::size_t top_ = 0;
};

// By access: when its line is accessed next.
std::vector<std::uint32_t> next_uses(std::span<const std::uint32_t> units, Index unit_count) {
  std::vector<std::uint32_t> next(units.size());
  std::vector<std::uint32_t> seen(static_cast<std::size_t>(unit_count), kNever);
  for (std::size_t t = units.size(); t-- > 0;) {
    next[t] = std::exchange(seen[units[t]], static_cast<std::uint32_t>(t));
  }
  return next;
}

class OptStack {
 public:
  explicit OptStack(Index unit_count)
      : next_(static_cast<std::size_t>(unit_count) + 1),
        unit_at_(static_cast<std::size_t>(unit_count) + 1, 0),
        position_(static_cast<std::size_t>(unit_count), 0) {}

  // Positions begin at 1.
  std::uint32_t touch(std::uint32_t unit, std::uint32_t next_use) {
    const std::size_t before = position_[unit];
    const std::size_t end = before == 0 ? ++size_ : before;
    std::uint32_t moved = unit;
    std::uint32_t moved_next = next_use;
    std::size_t place = 1;
    while (place < end) {
      const std::uint32_t latest = next_.at(place);
      moved = put(place, moved, moved_next);
      moved_next = latest;
      place = next_.next_above(place, end, latest);
      ++moves_;
    }
    put(end, moved, moved_next);
    return static_cast<std::uint32_t>(before);
  }

  std::uint64_t moves() const { return moves_; }

 private:
  // Returns the unit that was there.
  std::uint32_t put(std::size_t place, std::uint32_t unit, std::uint32_t next_use) {
    next_.set(place, next_use);
    position_[unit] = static_cast<std::uint32_t>(place);
    return std::exchange(unit_at_[place], unit);
  }

  LatestTree next_;
  std::vector<std::uint32_t> unit_at_;
  std::vector<std::uint32_t> position_;  // by unit; 0 before its first access
  std::size_t size_ = 0;
  std::uint64_t moves_ = 0;
};

}  // namespace

std::optional<std::vector<std::uint32_t>> opt_distances_by_chain(
    std::span<const std::uint32_t> units, Index unit_count, double moves_per_access) {
  const std::vector<std::uint32_t> next = next_uses(units, unit_count);
  OptStack stack(unit_count);
  std::vector<std::uint32_t> distances(units.size());
  for (std::size_t t = 0; t < units.size(); ++t) {
    distances[t] = stack.touch(units[t], next[t]);
    const std::uint64_t moves = stack.moves();
    if (moves > kMovesFree &&
        static_cast<double>(moves) > moves_per_access * static_cast<double>(t + 1)) {
      return std::nullopt;
    }
  }
  return distances;
}

}  // namespace flashbound
