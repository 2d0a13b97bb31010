#include "sim/capacity_curve.hpp"

#include <algorithm>

namespace flashbound {
namespace {

// Counts at distances above `lines`.
Int128 beyond(const std::vector<DistanceCount>& distances, Index lines) {
  Int128 sum = 0;
  for (const DistanceCount& d : distances) {
    if (d.distance > lines) sum = checked_add(sum, d.count);
  }
  return sum;
}

Int128 total(const std::vector<DistanceCount>& distances) { return beyond(distances, 0); }

}  // namespace

std::vector<CacheTraffic> traffic_at(const CapacityCurve& curve, Index lines) {
  std::vector<CacheTraffic> traffic;
  for (const TensorCurve& t : curve.tensors) {
    const Int128 read_misses = beyond(t.reads, lines);
    const Int128 write_misses = beyond(t.writes, lines);
    traffic.push_back({.tensor = t.tensor,
                       .read_hits = checked_sub(total(t.reads), read_misses),
                       .read_misses = checked_add(t.cold_reads, read_misses),
                       .write_hits = checked_sub(total(t.writes), write_misses),
                       .write_misses = checked_add(t.cold_writes, write_misses),
                       .write_backs = checked_add(t.last_writes, beyond(t.rewrites, lines))});
  }
  return traffic;
}

Bytes read_bytes(const std::vector<CacheTraffic>& traffic, Index line_bytes) {
  Bytes bytes;
  for (const CacheTraffic& t : traffic) bytes += Bytes(checked_mul(t.read_misses, line_bytes));
  return bytes;
}

Bytes write_bytes(const std::vector<CacheTraffic>& traffic, Index line_bytes) {
  Bytes bytes;
  for (const CacheTraffic& t : traffic) bytes += Bytes(checked_mul(t.write_backs, line_bytes));
  return bytes;
}

std::vector<Index> breakpoints(const CapacityCurve& curve) {
  std::vector<Index> capacities;
  for (const TensorCurve& t : curve.tensors) {
    for (const auto* distances : {&t.reads, &t.rewrites}) {
      for (const DistanceCount& d : *distances) capacities.push_back(d.distance);
    }
  }
  std::sort(capacities.begin(), capacities.end());
  capacities.erase(std::unique(capacities.begin(), capacities.end()), capacities.end());
  return capacities;
}

}  // namespace flashbound
