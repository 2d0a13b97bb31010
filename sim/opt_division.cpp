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

struct Reuse {
  std::uint32_t start = 0;  // point at which the line was accessed before
  std::uint32_t end = 0;    // point at which it is accessed again
  std::uint32_t access = 0;
};

struct Node {
  std::vector<Reuse> reuses{};           // by end; points are numbered within the node
  std::vector<std::int32_t> at_point{};  // room at a point, for intervals strictly across it
  std::vector<std::int32_t> at_gap{};    // least room between it and the next one
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

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

// Whether capacity `middle` keeps each reuse.
std::vector<std::uint8_t> kept_at(const Node& node, std::uint32_t middle) {
  const auto more = static_cast<std::int32_t>(middle - node.low);
  const std::size_t points = node.at_point.size();
  FreeSlots slots(points);
  std::vector<std::uint8_t> kept(node.reuses.size(), 0);
  std::size_t next = 0;
  for (std::uint32_t p = 0; p < points; ++p) {
    if (next < kept.size() && node.reuses[next].end == p) {
      if (slots.take(node.reuses[next].start)) {
        kept[next] = 1;
        slots.add(p, 1);
      }
      ++next;
      if (next + kAhead < kept.size()) slots.prefetch(node.reuses[next + kAhead].start);
    }
    slots.limit(p, node.at_point[p] + more);
    // One interval starts at a point, so that at most one more spans the gap after it.
    const std::int32_t after = std::min(node.at_gap[p], node.at_point[p] + 1) + more;
    slots.limit(p, after);
    slots.add(p, after - slots.free());
  }
  return kept;
}

// Takes what was kept off the room that `middle` gives.
void use_room(Node& node, const std::vector<std::uint8_t>& kept, std::uint32_t middle) {
  const auto more = static_cast<std::int32_t>(middle - node.low);
  std::vector<std::int32_t> starts(node.at_point.size(), 0);
  for (std::size_t r = 0; r < kept.size(); ++r) {
    if (kept[r] != 0) ++starts[node.reuses[r].start];
  }
  std::int32_t across = 0;
  std::size_t next = 0;
  for (std::uint32_t p = 0; p < node.at_point.size(); ++p) {
    if (next < kept.size() && node.reuses[next].end == p) across -= kept[next++];
    node.at_point[p] += more - across;
    across += starts[p];
    if (node.at_gap[p] < kNoLimit) node.at_gap[p] += more - across;
  }
}

// The node of the reuses that were kept, or of the others.
Node part_of(const Node& node, const std::vector<std::uint8_t>& kept, std::uint8_t wanted) {
  const auto size = static_cast<std::size_t>(std::count(kept.begin(), kept.end(), wanted));
  Node part;
  if (size == 0) return part;
  part.reuses.reserve(size);
  std::vector<std::uint32_t> number(node.at_point.size(), kNobody);
  for (std::size_t r = 0; r < kept.size(); ++r) {
    if (kept[r] != wanted) continue;
    number[node.reuses[r].start] = number[node.reuses[r].end] = 0;
    part.reuses.push_back(node.reuses[r]);
  }
  const std::size_t points = std::min(number.size(), 2 * size);
  part.at_point.reserve(points);
  part.at_gap.reserve(points);
  for (std::size_t p = 0; p < number.size(); ++p) {
    if (number[p] != kNobody) {
      number[p] = static_cast<std::uint32_t>(part.at_point.size());
      part.at_point.push_back(node.at_point[p]);
      part.at_gap.push_back(node.at_gap[p]);
    } else if (!part.at_gap.empty()) {
      std::int32_t& gap = part.at_gap.back();
      gap = std::min({gap, node.at_point[p], node.at_gap[p]});
    }
  }
  for (Reuse& reuse : part.reuses) {
    reuse.start = number[reuse.start];
    reuse.end = number[reuse.end];
  }
  return part;
}

void solve(Node node, std::vector<std::uint32_t>& distances) {
  if (node.reuses.empty()) return;
  if (node.high - node.low == 1) {
    for (const Reuse& reuse : node.reuses) distances[reuse.access] = node.high;
    return;
  }
  const std::uint32_t middle = node.low + (node.high - node.low) / 2;
  const std::vector<std::uint8_t> kept = kept_at(node, middle);
  Node smaller = part_of(node, kept, 1);
  use_room(node, kept, middle);
  Node larger = part_of(node, kept, 0);
  smaller.low = node.low;
  smaller.high = larger.low = middle;
  larger.high = node.high;
  node = Node{};  // not held during what follows
  solve(std::move(smaller), distances);
  solve(std::move(larger), distances);
}

}  // namespace

std::vector<std::uint32_t> opt_distances_by_division(std::span<const std::uint32_t> units,
                                                     Index unit_count) {
  Node root;
  std::vector<std::uint32_t> last(static_cast<std::size_t>(unit_count), kNobody);
  for (std::uint32_t t = 0; t < units.size(); ++t) {
    std::uint32_t& before = last[units[t]];
    if (before == kNobody) {
      ++root.high;
    } else {
      root.reuses.push_back({before, t, t});
    }
    before = t;
  }
  root.at_point.assign(units.size(), -1);
  root.at_gap.assign(units.size(), kNoLimit);
  std::vector<std::uint32_t> distances(units.size(), 0);
  solve(std::move(root), distances);
  return distances;
}

}  // namespace flashbound
