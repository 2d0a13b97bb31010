#include "sim/stack_curve.hpp"

#include "core/errors.hpp"
#include "sim/lru_stack.hpp"
#include "sim/opt_distances.hpp"
#include "sim/weighted_lru_stack.hpp"
#include "tests/sim/cache_oracle.hpp"
#include "tests/sim/random_trace.hpp"

#include <doctest/doctest.h>

#include <random>

namespace flashbound {

TEST_SUITE_BEGIN("stack_curve");

TEST_CASE("one pass gives what a cache of every capacity moves") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1200; ++round) {
    const AccessTrace trace = random_trace(random, 14, 70);
    for (const StackPolicy policy : {StackPolicy::lru, StackPolicy::opt}) {
      const CapacityCurve curve = stack_curve(trace, policy);
      for (Index lines = 0; lines <= trace.unit_count() + 1; ++lines) {
        CAPTURE(round);
        CAPTURE(lines);
        REQUIRE(traffic_at(curve, lines) == cache_by_brute_force(trace, policy, lines));
      }
    }
  }
}

TEST_CASE("both ways to OPT distances agree on every kind of trace") {
  std::mt19937_64 random(2);
  for (const TraceKind kind : kTraceKinds) {
    for (const Index units : {1, 2, 63, 64, 65, 300, 5000}) {
      const std::vector<std::uint32_t> trace = touched_units(random, kind, units, 40000);
      const auto chain = opt_distances_by_chain(trace, units, 1e9);
      REQUIRE(chain.has_value());
      CAPTURE(static_cast<int>(kind));
      CAPTURE(units);
      CHECK(*chain == opt_distances_by_division(trace, units));
      CHECK(*chain == opt_distances(trace, units));
    }
  }
}

TEST_CASE("a chain that moves too much gives up and the division takes over") {
  std::mt19937_64 random(3);
  const std::vector<std::uint32_t> trace = touched_units(random, TraceKind::uniform, 20000, 400000);
  CHECK_FALSE(opt_distances_by_chain(trace, 20000, 16).has_value());
  CHECK(opt_distances(trace, 20000) == *opt_distances_by_chain(trace, 20000, 1e9));
}

TEST_CASE("LRU distances outlive many compactions of the timeline") {
  std::mt19937_64 random(4);
  for (const TraceKind kind : kTraceKinds) {
    for (const Index units : {1, 64, 1000, 70000}) {
      const std::vector<std::uint32_t> trace = touched_units(random, kind, units, 700000);
      LruStack by_line(units);
      WeightedLruStack by_tile(std::vector<std::uint32_t>(static_cast<std::size_t>(units), 1));
      std::size_t differing = 0;
      for (const std::uint32_t unit : trace)
        differing += by_line.touch(unit) != by_tile.touch(unit);
      CAPTURE(static_cast<int>(kind));
      CAPTURE(units);
      CHECK(differing == 0);
    }
  }
}

TEST_CASE("LRU distances count the distinct lines in between") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 500; ++round) {
    const AccessTrace trace = random_tiles(random, 10, 60);
    WeightedLruStack stack(trace.unit_lines);
    std::vector<Index> distances;
    for (const std::uint32_t access : trace.accesses) distances.push_back(stack.touch(access / 2));
    REQUIRE(distances == distances_by_brute_force(trace));
  }
}

TEST_CASE("a curve of tiles is that of their lines") {
  std::mt19937_64 random(6);
  for (int round = 0; round < 500; ++round) {
    const AccessTrace tiles = random_tiles(random, 10, 60);
    CHECK(stack_curve(tiles, StackPolicy::lru) == stack_curve(in_lines(tiles), StackPolicy::lru));
    CHECK(stack_curve(tiles, StackPolicy::opt) == stack_curve(in_lines(tiles), StackPolicy::opt));
  }
}

TEST_CASE("OPT never misses more than LRU and neither misses more in a larger cache") {
  std::mt19937_64 random(7);
  const auto misses = [](const CapacityCurve& curve, Index lines) {
    Int128 sum = 0;
    for (const CacheTraffic& t : traffic_at(curve, lines)) sum += t.read_misses + t.write_misses;
    return sum;
  };
  for (int round = 0; round < 200; ++round) {
    const AccessTrace trace = random_trace(random, 40, 400);
    const CapacityCurve lru = stack_curve(trace, StackPolicy::lru);
    const CapacityCurve opt = stack_curve(trace, StackPolicy::opt);
    for (Index lines = 0; lines <= trace.unit_count(); ++lines) {
      CHECK(misses(opt, lines) <= misses(lru, lines));
      if (lines == 0) continue;
      CHECK(misses(lru, lines) <= misses(lru, lines - 1));
      CHECK(misses(opt, lines) <= misses(opt, lines - 1));
    }
  }
}

TEST_CASE("a cycle is a cliff under LRU and a line under OPT") {
  constexpr Index kLines = 50;
  constexpr Index kRounds = 200;
  AccessTrace trace{.line_bytes = 64, .tensors = {"k"}};
  trace.unit_tensor.assign(kLines, 0);
  for (Index touch = 0; touch < kLines * kRounds; ++touch) {
    trace.accesses.push_back(AccessTrace::read(static_cast<std::uint32_t>(touch % kLines)));
  }
  const CapacityCurve lru = stack_curve(trace, StackPolicy::lru);
  REQUIRE(lru.tensors[0].reads.size() == 1);
  CHECK(lru.tensors[0].reads[0] == DistanceCount{kLines, kLines * (kRounds - 1)});
  // A cache of C lines keeps C - 1 of them from one touch to the next, of kLines - 1 that it could.
  const CapacityCurve opt = stack_curve(trace, StackPolicy::opt);
  for (Index lines = 1; lines <= kLines; ++lines) {
    const Int128 hits = traffic_at(opt, lines)[0].read_hits;
    const Int128 reuses = kLines * (kRounds - 1);
    const Int128 expected = reuses * (lines - 1) / (kLines - 1);
    CAPTURE(lines);
    CHECK(hits - expected <= kLines);
    CHECK(expected - hits <= kLines);
  }
}

TEST_CASE("a repeat stands for so many runs of its accesses") {
  AccessTrace written_out{.line_bytes = 64, .tensors = {"k", "o"}};
  written_out.unit_tensor = {0, 0, 0, 1};
  AccessTrace folded = written_out;
  const std::vector<std::uint32_t> body{AccessTrace::read(0), AccessTrace::read(1),
                                        AccessTrace::read(2), AccessTrace::write(3)};
  for (int run = 0; run < 9; ++run) {
    written_out.accesses.insert(written_out.accesses.end(), body.begin(), body.end());
    if (run < 2) folded.accesses.insert(folded.accesses.end(), body.begin(), body.end());
  }
  folded.repeats = {{.begin = 4, .end = 8, .times = 8}};
  CHECK(stack_curve(folded, StackPolicy::lru) == stack_curve(written_out, StackPolicy::lru));
  CHECK_THROWS_AS(stack_curve(folded, StackPolicy::opt), ConfigError);
}

TEST_CASE("an empty trace moves nothing") {
  const AccessTrace trace{.line_bytes = 64, .tensors = {"k"}};
  for (const StackPolicy policy : {StackPolicy::lru, StackPolicy::opt}) {
    const CapacityCurve curve = stack_curve(trace, policy);
    CHECK(traffic_at(curve, 3)[0] == CacheTraffic{.tensor = "k"});
    CHECK(breakpoints(curve).empty());
  }
}

TEST_SUITE_END();

}  // namespace flashbound
