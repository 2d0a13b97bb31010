#include "sim/capacity_curve.hpp"

#include <doctest/doctest.h>

namespace flashbound {

TEST_SUITE_BEGIN("capacity_curve");

TEST_CASE("a curve splits accesses into hits and misses at each capacity") {
  TensorCurve t{.tensor = "k", .cold_reads = 3, .cold_writes = 1};
  t.reads = {{2, 5}, {7, 4}};
  t.writes = {{3, 2}};
  t.last_writes = 1;
  t.rewrites = {{3, 2}};
  const CapacityCurve curve{.policy = StackPolicy::lru, .line_bytes = 64, .tensors = {t}};
  CHECK(breakpoints(curve) == std::vector<Index>{2, 3, 7});
  CHECK(traffic_at(curve, 0)[0] == CacheTraffic{"k", 0, 12, 0, 3, 3});
  CHECK(traffic_at(curve, 1)[0] == traffic_at(curve, 0)[0]);
  CHECK(traffic_at(curve, 2)[0] == CacheTraffic{"k", 5, 7, 0, 3, 3});
  CHECK(traffic_at(curve, 3)[0] == CacheTraffic{"k", 5, 7, 2, 1, 1});
  CHECK(traffic_at(curve, 7)[0] == CacheTraffic{"k", 9, 3, 2, 1, 1});
  CHECK(read_bytes(traffic_at(curve, 7), 64) == Bytes(192));
  CHECK(write_bytes(traffic_at(curve, 2), 64) == Bytes(192));
}

TEST_SUITE_END();

}  // namespace flashbound
