// A reuse is an interval from one access of a line to the next. To hit, the line must be kept at
// every access strictly between. A cache of C lines keeps at most C - 1 lines besides the one
// accessed, so that OPT is interval scheduling: keep as many intervals as possible, no more than
// C - 1 across any access. Taking intervals in order of their ends, and each one that still fits,
// is optimal; what it keeps at C it keeps at C + 1.
//
// So the distances follow by division: a node has the intervals whose distance is in (low, high]
// and, by access, how many of them capacity `low` has room for besides those already kept (-1 at
// the root, where low = 0). Capacity `middle` has middle - low more. Intervals that it keeps go to
// (low, middle] with the same room, the others to (middle, high] with the room that is left.
// Accesses that are no end of an interval of the node merge with their neighbours: only the least
// room counts.
#include "sim/opt_distances.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace flashbound {
namespace {

constexpr std::int32_t kNoLimit = std::numeric_limits<std::int32_t>::max() / 2;
constexpr std::uint32_t kNobody = 0xffffffff;
constexpr std::size_t kAhead = 12;  // reuses whose slots are fetched before they are looked for

// An access that begins or ends an interval of the node, or does both.
struct Point {
  std::uint32_t start = kNobody;  // point at which the interval that ends here begins
  std::uint32_t access = 0;
  std::int32_t room = -1;       // for intervals strictly across the point
  std::int32_t gap = kNoLimit;  // least room between it and the next point
};

struct Node {
  std::vector<Point> points{};
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

// What became of the intervals at a point.
constexpr std::uint8_t kEndKept = 1;
constexpr std::uint8_t kStartKept = 2;
constexpr std::uint8_t kEndLeft = 4;
constexpr std::uint8_t kStartLeft = 8;

// A set of numbers below `size`, for its largest member at or below a given one.
class SortedSet {
 public:
  explicit SortedSet(std::size_t size) {
    do {
      size = size / 64 + 1;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }
  void insert(std::uint32_t member) {
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[member / 64];
      const bool known = word != 0;
      word |= std::uint64_t{1} << (member % 64);
      if (known) return;
      member /= 64;
    }
  }
  void erase(std::uint32_t member) {
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[member / 64];
      word &= ~(std::uint64_t{1} << (member % 64));
      if (word != 0) return;
      member /= 64;
    }
  }
  void prefetch(std::uint32_t member) const { __builtin_prefetch(&levels_[0][member / 64], 1); }
  // kNobody if there is none.
  std::uint32_t at_or_below(std::uint32_t limit) const {
    std::uint64_t below = (std::uint64_t{2} << (limit % 64)) - 1;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const std::uint64_t word = levels_[level][limit / 64] & below;
      if (word != 0) return last_under(level, limit / 64, word);
      limit /= 64;
      below = (std::uint64_t{1} << (limit % 64)) - 1;
    }
    return kNobody;
  }

 private:
  std::uint32_t last_under(std::size_t level, std::uint32_t index, std::uint64_t word) const {
    while (true) {
      index = index * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(word));
      if (level == 0) return index;
      word = levels_[--level][index];
    }
  }

  std::vector<std::vector<std::uint64_t>> levels_;
};

// Slots by the point since which they are free. An interval takes the slot that is free since the
// latest point at or before its start, and gives it back free since its end.
class FreeSlots {
 public:
  explicit FreeSlots(std::size_t points) : slots_(points, 0), since_(points) {}

  void prefetch(std::uint32_t start) const { since_.prefetch(start); }
  bool take(std::uint32_t start) {
    const std::uint32_t point = since_.at_or_below(start);
    if (point == kNobody) return false;
    if (--slots_[point] == 0) since_.erase(point);
    --free_;
    return true;
  }
  // At a point that no slot has been added after.
  void add(std::uint32_t point, std::int32_t slots) {
    if (slots == 0) return;
    if (slots_[point] == 0) since_.insert(point);
    slots_[point] += static_cast<std::uint32_t>(slots);
    free_ += slots;
  }
  // At most so many span what comes after `point`: those free since the latest points are lost.
  void limit(std::uint32_t point, std::int32_t slots) {
    while (free_ > slots) {
      point = since_.at_or_below(point);
      const auto lost =
          std::min<std::uint32_t>(slots_[point], static_cast<std::uint32_t>(free_ - slots));
      slots_[point] -= lost;
      free_ -= static_cast<std::int32_t>(lost);
      if (slots_[point] == 0) since_.erase(point);
    }
  }
  std::int32_t free() const { return free_; }

 private:
  std::vector<std::uint32_t> slots_;  // by point
  SortedSet since_;                   // points with slots
  std::int32_t free_ = 0;
};

// Which intervals capacity `middle` keeps, by point.
std::vector<std::uint8_t> fates_at(const Node& node, std::uint32_t middle) {
  const auto more = static_cast<std::int32_t>(middle - node.low);
  const std::size_t points = node.points.size();
  FreeSlots slots(points);
  std::vector<std::uint8_t> fates(points, 0);
  for (std::uint32_t p = 0; p < points; ++p) {
    const Point& point = node.points[p];
    if (p + kAhead < points && node.points[p + kAhead].start != kNobody) {
      slots.prefetch(node.points[p + kAhead].start);
    }
    if (point.start != kNobody) {
      const bool kept = slots.take(point.start);
      fates[p] = kept ? kEndKept : kEndLeft;
      fates[point.start] |= kept ? kStartKept : kStartLeft;
      if (kept) slots.add(p, 1);
    }
    slots.limit(p, point.room + more);
    // One interval starts at a point, so that at most one more spans the gap after it.
    const std::int32_t after = std::min(point.gap, point.room + 1) + more;
    slots.limit(p, after);
    slots.add(p, after - slots.free());
  }
  return fates;
}

// A node in the making: points that are none of its own merge into the gap before them.
class Part {
 public:
  explicit Part(std::size_t points) { node_.points.reserve(points); }

  std::uint32_t add(Point point) {
    node_.points.push_back(point);
    return static_cast<std::uint32_t>(node_.points.size() - 1);
  }
  void merge(std::int32_t room, std::int32_t gap) {
    if (node_.points.empty()) return;
    std::int32_t& before = node_.points.back().gap;
    before = std::min({before, room, gap});
  }
  Node node(std::uint32_t low, std::uint32_t high) && {
    node_.low = low;
    node_.high = high;
    return std::move(node_);
  }

 private:
  Node node_;
};

// The node of the intervals that were kept, with the same room, and that of the others, with what
// the kept ones leave of the room at `middle`.
std::pair<Node, Node> parts_of(const Node& node, const std::vector<std::uint8_t>& fates,
                               std::uint32_t middle) {
  const auto more = static_cast<std::int32_t>(middle - node.low);
  const auto is = [](std::uint8_t mask) {
    return [mask](std::uint8_t fate) { return (fate & mask) != 0; };
  };
  constexpr std::uint8_t kKept = kEndKept | kStartKept;
  constexpr std::uint8_t kLeft = kEndLeft | kStartLeft;
  Part smaller(static_cast<std::size_t>(std::count_if(fates.begin(), fates.end(), is(kKept))));
  Part larger(static_cast<std::size_t>(std::count_if(fates.begin(), fates.end(), is(kLeft))));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> number(fates.size());
  std::int32_t across = 0;  // kept intervals over this place
  for (std::size_t p = 0; p < fates.size(); ++p) {
    Point point = node.points[p];
    const std::uint8_t fate = fates[p];
    if ((fate & kKept) == 0) {
      smaller.merge(point.room, point.gap);
    } else {
      const std::uint32_t start = (fate & kEndKept) != 0 ? number[point.start].first : kNobody;
      number[p].first = smaller.add({start, point.access, point.room, point.gap});
    }
    if ((fate & kEndKept) != 0) --across;
    point.room += more - across;
    if ((fate & kStartKept) != 0) ++across;
    if (point.gap < kNoLimit) point.gap += more - across;
    if ((fate & kLeft) == 0) {
      larger.merge(point.room, point.gap);
    } else {
      point.start = (fate & kEndLeft) != 0 ? number[point.start].second : kNobody;
      number[p].second = larger.add(point);
    }
  }
  return {std::move(smaller).node(node.low, middle), std::move(larger).node(middle, node.high)};
}

void solve(Node node, std::vector<std::uint32_t>& distances) {
  if (node.points.empty()) return;
  if (node.high - node.low == 1) {
    for (const Point& point : node.points) {
      if (point.start != kNobody) distances[point.access] = node.high;
    }
    return;
  }
  const std::uint32_t middle = node.low + (node.high - node.low) / 2;
  auto parts = parts_of(node, fates_at(node, middle), middle);
  node = Node{};  // not held during what follows
  solve(std::move(parts.first), distances);
  solve(std::move(parts.second), distances);
}

}  // namespace

std::vector<std::uint32_t> opt_distances_by_division(std::span<const std::uint32_t> units,
                                                     Index unit_count) {
  Node root;
  root.points.reserve(units.size());
  std::vector<std::uint32_t> last(static_cast<std::size_t>(unit_count), kNobody);
  for (std::uint32_t t = 0; t < units.size(); ++t) {
    const std::uint32_t before = std::exchange(last[units[t]], t);
    if (before == kNobody) ++root.high;
    root.points.push_back({.start = before, .access = t});
  }
  std::vector<std::uint32_t> distances(units.size(), 0);
  solve(std::move(root), distances);
  return distances;
}

}  // namespace flashbound
