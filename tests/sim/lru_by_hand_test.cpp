#include "tests/sim/lru_by_hand.hpp"

#include <doctest/doctest.h>

namespace flashbound {

TEST_SUITE_BEGIN("lru_by_hand");

TEST_CASE("distances and write-backs of a trace worked out on paper") {
  AccessTrace trace{.line_bytes = 64, .tensors = {"a", "b"}, .unit_tensor = {0, 0, 1}};
  trace.unit_lines = {1, 1, 3};
  // Read 0, write 1, read 2, read 0 (1 + 1 + 3 lines), write 1 (5), write 1 (1).
  trace.accesses = {AccessTrace::read(0), AccessTrace::write(1), AccessTrace::read(2),
                    AccessTrace::read(0), AccessTrace::write(1), AccessTrace::write(1)};
  const CapacityCurve curve = testing::lru_by_hand(trace);
  TensorCurve a{.tensor = "a", .cold_reads = 1, .cold_writes = 1};
  a.reads = {{5, 1}};
  a.writes = {{1, 1}, {5, 1}};
  a.last_writes = 1;
  a.rewrites = {{1, 1}, {5, 1}};
  CHECK(curve.tensors[0] == a);
  CHECK(curve.tensors[1] == TensorCurve{.tensor = "b", .cold_reads = 3});
}

TEST_CASE("a read that misses after a write has written the line back") {
  AccessTrace trace{.line_bytes = 64, .tensors = {"a"}, .unit_tensor = {0, 0, 0}};
  // Between the two writes of 0 its largest distance is 3, at the read.
  trace.accesses = {AccessTrace::write(0), AccessTrace::read(1), AccessTrace::read(2),
                    AccessTrace::read(0), AccessTrace::write(0)};
  const CapacityCurve curve = testing::lru_by_hand(trace);
  CHECK(curve.tensors[0].writes == std::vector<DistanceCount>{{1, 1}});
  CHECK(curve.tensors[0].rewrites == std::vector<DistanceCount>{{3, 1}});
}

TEST_SUITE_END();

}  // namespace flashbound
