// Nothing that is simulated moves less than the lower bounds say of so much fast memory: a cache
// and the tiles beside it together.
#include "core/count.hpp"
#include "core/lower_bound.hpp"
#include "core/programs.hpp"
#include "sim/program_trace.hpp"
#include "sim/stack_curve.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <string>

namespace flashbound {
namespace {

constexpr NumberFormat kDtype = NumberFormat::fp32;
constexpr Index kLine = 4;  // one word: a line never brings what was not asked for

struct Curves {
  CapacityCurve lru{};
  CapacityCurve opt{};
};

Curves curves_of(const Program& program, const Problem& problem, const Tile& tile) {
  const Layout where = layout(program, problem, tile, kDtype, LayoutKind::contiguous, kLine);
  const AccessTrace trace = line_trace(program, problem, tile, where);
  return {stack_curve(trace, StackPolicy::lru), stack_curve(trace, StackPolicy::opt)};
}

}  // namespace

TEST_SUITE("cross.sim_bounds") {
  TEST_CASE("no cache beside any program moves less than the lower bound at their sum") {
    int points = 0;
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(what);
        const Program program = algorithm.program();
        const Curves curves = curves_of(program, random.problem, random.tile);
        const IoCount counted = count(program, random.problem, random.tile, kDtype);
        const Bytes tiles = bytes_of(counted.sram_peak, byte_size(kDtype));
        for (const CapacityCurve* curve : {&curves.lru, &curves.opt}) {
          std::vector<Index> capacities = breakpoints(*curve);
          capacities.push_back(0);
          for (const Index lines : capacities) {
            const std::vector<CacheTraffic> traffic = traffic_at(*curve, lines);
            const LowerBound bound = lower_bound(random.problem, kDtype, algorithm.pass,
                                                 tiles + Bytes(Int128{lines} * kLine));
            CAPTURE(lines);
            REQUIRE(read_bytes(traffic, kLine) >= bound.read_bytes());
            REQUIRE(write_bytes(traffic, kLine) >= bound.write_bytes());
            REQUIRE(read_bytes(traffic, kLine) + write_bytes(traffic, kLine) >= bound.bytes());
            ++points;
          }
        }
      }
    }
    CHECK(points > 20000);
  }

  TEST_CASE("a cache of no lines moves the count and a large one each word that is touched once") {
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(what);
        const Program program = algorithm.program();
        const Curves curves = curves_of(program, random.problem, random.tile);
        const IoCount counted = count(program, random.problem, random.tile, kDtype);
        const std::vector<CacheTraffic> none = traffic_at(curves.lru, 0);
        for (std::size_t t = 0; t < none.size(); ++t) {
          CHECK(none[t].read_misses == counted.tensors[t].read.value());
          CHECK(none[t].write_backs == counted.tensors[t].written.value());
        }
        for (const CapacityCurve* curve : {&curves.lru, &curves.opt}) {
          const std::vector<Index> steps = breakpoints(*curve);
          const std::vector<CacheTraffic> all =
              traffic_at(*curve, steps.empty() ? 1 : steps.back());
          for (std::size_t t = 0; t < all.size(); ++t) {
            const TensorCurve& tensor = curve->tensors[t];
            CHECK(all[t].read_misses == tensor.cold_reads);
            CHECK(all[t].write_backs == tensor.last_writes);
          }
        }
      }
    }
  }
}

}  // namespace flashbound
