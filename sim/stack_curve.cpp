#include "sim/stack_curve.hpp"

#include "core/errors.hpp"
#include "sim/lru_stack.hpp"
#include "sim/opt_distances.hpp"
#include "sim/weighted_lru_stack.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace flashbound {
namespace {

constexpr std::size_t kAhead = 16;  // accesses whose units are fetched before they are touched
constexpr Int128 kLinesMax = Int128{1} << 31;

// Line accesses by distance. Short distances are counted in place; a weighted trace has few
// distances but long ones.
class Histogram {
 public:
  void add(Index distance, Int128 count) {
    const auto at = static_cast<std::size_t>(distance);
    if (at >= counts_.size()) {
      if (at >= kDense) return add_far(distance, count);
      counts_.resize(std::min(std::max(at + 1, 2 * counts_.size()), kDense), 0);
    }
    counts_[at] += count;
  }

  std::vector<DistanceCount> sorted() {
    std::vector<DistanceCount> all;
    for (std::size_t d = 0; d < counts_.size(); ++d) {
      if (counts_[d] != 0) all.push_back({static_cast<Index>(d), counts_[d]});
    }
    const auto before = [](const DistanceCount& a, const DistanceCount& b) {
      return a.distance < b.distance;
    };
    std::sort(far_.begin(), far_.end(), before);
    for (const DistanceCount& d : far_) {
      if (!all.empty() && all.back().distance == d.distance) {
        all.back().count += d.count;
      } else {
        all.push_back(d);
      }
    }
    return all;
  }

 private:
  static constexpr std::size_t kDense = std::size_t{1} << 22;

  void add_far(Index distance, Int128 count) {
    if (!far_.empty() && far_.back().distance == distance) {
      far_.back().count += count;
    } else {
      far_.push_back({distance, count});
    }
  }

  std::vector<Int128> counts_;
  std::vector<DistanceCount> far_;  // in order of arrival
};

struct TensorCounts {
  Int128 cold_reads = 0;
  Int128 cold_writes = 0;
  Int128 last_writes = 0;
  Histogram reads, writes, rewrites;
};

// What happened to a unit since it was written last: the largest distance, or never written.
constexpr Index kUnwritten = -1;

class CurveBuilder {
 public:
  explicit CurveBuilder(const AccessTrace& trace)
      : trace_(trace),
        counts_(trace.tensors.size()),
        written_(trace.tensors.size(), 0),
        since_write_(trace.unit_tensor.size(), kUnwritten) {
    for (const std::uint32_t access : trace.accesses) {
      if (access % 2 != 0) written_[trace.unit_tensor[access / 2]] = 1;
    }
  }

  // `distance` is 0 at a first touch.
  void add(std::uint32_t access, Index distance, Index times) {
    const std::uint32_t unit = access / 2;
    const std::uint8_t tensor = trace_.unit_tensor[unit];
    TensorCounts& counts = counts_[tensor];
    const Int128 lines = Int128{times} * trace_.lines(unit);
    const bool write = access % 2 != 0;
    if (distance == 0) {
      (write ? counts.cold_writes : counts.cold_reads) += lines;
    } else {
      (write ? counts.writes : counts.reads).add(distance, lines);
    }
    if (written_[tensor] == 0) return;
    Index& since = since_write_[unit];
    if (since != kUnwritten) since = std::max(since, distance);
    if (!write) return;
    if (since == kUnwritten) {
      counts.last_writes += lines;
    } else {
      counts.rewrites.add(since, lines);
    }
    since = 0;
  }

  CapacityCurve curve(StackPolicy policy) {
    CapacityCurve curve{.policy = policy, .line_bytes = trace_.line_bytes};
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      TensorCounts& counts = counts_[t];
      curve.tensors.push_back({.tensor = trace_.tensors[t],
                               .cold_reads = counts.cold_reads,
                               .cold_writes = counts.cold_writes,
                               .reads = counts.reads.sorted(),
                               .writes = counts.writes.sorted(),
                               .last_writes = counts.last_writes,
                               .rewrites = counts.rewrites.sorted()});
    }
    return curve;
  }

 private:
  const AccessTrace& trace_;
  std::vector<TensorCounts> counts_;
  std::vector<std::uint8_t> written_;  // by tensor: whether any of it ever is
  std::vector<Index> since_write_;     // by unit
};

// Calls visit(index, times) for each access in order.
template <class Visit>
void for_each_access(const AccessTrace& trace, const Visit& visit) {
  std::size_t at = 0;
  const auto go = [&](std::size_t end, Index times) {
    for (; at < end; ++at) visit(at, times);
  };
  for (const AccessTrace::Repeat& repeat : trace.repeats) {
    go(repeat.begin, 1);
    go(repeat.end, repeat.times);
  }
  go(trace.accesses.size(), 1);
}

CapacityCurve lru_curve(const AccessTrace& trace) {
  CurveBuilder builder(trace);
  if (trace.unit_lines.empty()) {
    LruStack stack(trace.unit_count());
    for_each_access(trace, [&](std::size_t at, Index times) {
      if (at + kAhead < trace.accesses.size()) stack.prefetch(trace.accesses[at + kAhead] / 2);
      builder.add(trace.accesses[at], stack.touch(trace.accesses[at] / 2), times);
    });
  } else {
    WeightedLruStack stack(trace.unit_lines);
    for_each_access(trace, [&](std::size_t at, Index times) {
      builder.add(trace.accesses[at], stack.touch(trace.accesses[at] / 2), times);
    });
  }
  return builder.curve(StackPolicy::lru);
}

CapacityCurve opt_curve(const AccessTrace& trace) {
  if (!trace.repeats.empty()) reject("repeats", std::to_string(trace.repeats.size()), "0 for opt");
  if (!trace.unit_lines.empty()) return opt_curve(in_lines(trace));
  std::vector<std::uint32_t> units;
  units.reserve(trace.accesses.size());
  for (const std::uint32_t access : trace.accesses) units.push_back(access / 2);
  const std::vector<std::uint32_t> distances = opt_distances(units, trace.unit_count());
  CurveBuilder builder(trace);
  for (std::size_t at = 0; at < distances.size(); ++at) {
    builder.add(trace.accesses[at], distances[at], 1);
  }
  return builder.curve(StackPolicy::opt);
}

}  // namespace

CapacityCurve stack_curve(const AccessTrace& trace, StackPolicy policy) {
  return policy == StackPolicy::lru ? lru_curve(trace) : opt_curve(trace);
}

AccessTrace in_lines(const AccessTrace& trace) {
  if (!trace.repeats.empty()) reject("repeats", std::to_string(trace.repeats.size()), "0");
  if (trace.unit_lines.empty()) return trace;
  AccessTrace lines{.line_bytes = trace.line_bytes, .tensors = trace.tensors};
  std::vector<std::uint32_t> first;
  for (std::size_t unit = 0; unit < trace.unit_tensor.size(); ++unit) {
    first.push_back(static_cast<std::uint32_t>(lines.unit_tensor.size()));
    lines.unit_tensor.insert(lines.unit_tensor.end(), trace.unit_lines[unit],
                             trace.unit_tensor[unit]);
    if (static_cast<Int128>(lines.unit_tensor.size()) > kLinesMax) {
      reject("lines", std::to_string(lines.unit_tensor.size()), "at most 2^31");
    }
  }
  Int128 accesses = 0;
  for (const std::uint32_t access : trace.accesses) accesses += trace.unit_lines[access / 2];
  if (accesses > kLinesMax) reject("line accesses", to_decimal(accesses), "at most 2^31");
  lines.accesses.reserve(static_cast<std::size_t>(accesses));
  for (const std::uint32_t access : trace.accesses) {
    for (std::uint32_t line = 0; line < trace.unit_lines[access / 2]; ++line) {
      lines.accesses.push_back(2 * (first[access / 2] + line) + access % 2);
    }
  }
  return lines;
}

}  // namespace flashbound
