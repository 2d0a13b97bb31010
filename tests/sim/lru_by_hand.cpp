#include "tests/sim/lru_by_hand.hpp"

#include <algorithm>
#include <map>

namespace flashbound::testing {
namespace {

using Counts = std::map<Index, Int128>;

struct TensorCounts {
  Counts reads, writes, rewrites;
};

std::vector<DistanceCount> listed(const Counts& counts) {
  std::vector<DistanceCount> list;
  for (const auto& entry : counts) list.push_back({entry.first, entry.second});
  return list;
}

}  // namespace

CapacityCurve lru_by_hand(const AccessTrace& trace) {
  CapacityCurve curve{.policy = StackPolicy::lru, .line_bytes = trace.line_bytes};
  for (const std::string& tensor : trace.tensors) curve.tensors.push_back({.tensor = tensor});
  std::vector<TensorCounts> counts(trace.tensors.size());
  std::vector<std::uint32_t> stack;  // most recent first
  // By unit: the largest distance since its last write, or -1 where it was not written.
  std::vector<Index> since_write(trace.unit_tensor.size(), -1);
  auto repeat = trace.repeats.begin();

  for (std::size_t a = 0; a < trace.accesses.size(); ++a) {
    while (repeat != trace.repeats.end() && repeat->end <= a) ++repeat;
    const bool repeats = repeat != trace.repeats.end() && repeat->begin <= a;
    const std::uint32_t unit = trace.accesses[a] / 2;
    const bool write = trace.accesses[a] % 2 == 1;
    const Int128 lines = Int128{trace.lines(unit)} * (repeats ? repeat->times : 1);
    TensorCurve& total = curve.tensors[trace.unit_tensor[unit]];
    TensorCounts& by_distance = counts[trace.unit_tensor[unit]];

    const auto found = std::find(stack.begin(), stack.end(), unit);
    if (found == stack.end()) {
      (write ? total.cold_writes : total.cold_reads) += lines;
      stack.insert(stack.begin(), unit);
    } else {
      Index distance = 0;
      for (auto it = stack.begin(); it <= found; ++it) distance += trace.lines(*it);
      (write ? by_distance.writes : by_distance.reads)[distance] += lines;
      std::rotate(stack.begin(), found, found + 1);
      if (since_write[unit] >= 0) since_write[unit] = std::max(since_write[unit], distance);
    }
    if (write) {
      if (since_write[unit] < 0) {
        total.last_writes += lines;
      } else {
        by_distance.rewrites[since_write[unit]] += lines;
      }
      since_write[unit] = 0;
    }
  }
  for (std::size_t t = 0; t < counts.size(); ++t) {
    curve.tensors[t].reads = listed(counts[t].reads);
    curve.tensors[t].writes = listed(counts[t].writes);
    curve.tensors[t].rewrites = listed(counts[t].rewrites);
  }
  return curve;
}

}  // namespace flashbound::testing
