#include "sim/tile_search.hpp"

#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/lower_bound.hpp"
#include "sim/envelope_facts.hpp"
#include "sim/tile_candidates.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace flashbound {
namespace {

Bytes needed(const Algorithm& algorithm, const Problem& problem, const Tile& tile,
             const TileSearch& search) {
  return required_bytes(
      footprint(algorithm.program(), problem, tile, search.dtype, search.footprint, search.stages),
      search.footprint);
}

// Every tile that there is, whole blocks to single rows, all panels and a few splits.
std::vector<Tile> every_tile(const Problem& problem, const Algorithm& algorithm) {
  std::vector<Tile> tiles;
  const Index sizes_kv = std::max(problem.seqlen_kv, problem.head_dim_v);
  const bool panels = algorithm.name.starts_with("small-cache");
  const Index splits = algorithm.name == "split-kv" ? 3 : 1;
  for (Index q = 1; q <= problem.seqlen_q; ++q) {
    for (Index kv = 1; kv <= sizes_kv; ++kv) {
      for (Index panel = 1; panel <= (panels ? kv : 1); ++panel) {
        if (kv % panel != 0) continue;
        for (Index s = 1; s <= splits; ++s) {
          tiles.push_back({.block_q = q, .block_kv = kv, .panel = panel, .num_splits = s});
        }
      }
    }
  }
  return tiles;
}

Problem small(Problem problem) {
  const auto cut = [](Index length) { return 1 + length % 14; };
  problem.seqlen_q = cut(problem.seqlen_q);
  problem.seqlen_kv = cut(problem.seqlen_kv);
  problem.block_mask.reset();
  problem.cu_seqlens_q.clear();
  problem.cu_seqlens_kv.clear();
  return problem;
}

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

// At every size of fast memory the staircase has the least of all tiles.
void check_least(const Algorithm& algorithm, const Problem& problem, const TileSearch& search) {
  const Staircase stairs = staircase(algorithm, problem, search);
  REQUIRE(stairs.all_tiles);
  REQUIRE_FALSE(stairs.points.empty());
  for (const Tile& tile : every_tile(problem, algorithm)) {
    const IoCount moved = closed_form(algorithm.name, problem, tile, search.dtype);
    const StairPoint* best = stairs.at(needed(algorithm, problem, tile, search));
    REQUIRE(best != nullptr);
    CAPTURE(tile.block_q);
    CAPTURE(tile.block_kv);
    CAPTURE(tile.panel);
    REQUIRE(best->moved() <= hbm_bytes(moved));
  }
  for (const StairPoint& point : stairs.points) {
    const IoCount counted = count(algorithm.program(), problem, point.tile, search.dtype);
    REQUIRE(point.read == hbm_read_bytes(counted));
    REQUIRE(point.written == hbm_write_bytes(counted));
    REQUIRE(point.sram == needed(algorithm, problem, point.tile, search));
  }
}

}  // namespace

TEST_SUITE("sim.tile_search") {
  TEST_CASE("no tile of any algorithm moves less than its staircase") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const Problem problem = small(random.problem);
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(what);
        const NumberFormat dtype = seed % 2 == 0 ? NumberFormat::fp16 : NumberFormat::fp32;
        check_least(algorithm, problem, {.dtype = dtype});
        if (seed % 4 == 0) {
          const auto stages = static_cast<Index>(1 + seed % 3);
          check_least(algorithm, problem,
                      {.dtype = dtype, .footprint = FootprintKind::kernel, .stages = stages});
        }
      }
    }
  }

  TEST_CASE("a staircase falls as it rises and nothing fits below it") {
    for (const Algorithm& algorithm : algorithms()) {
      const Staircase stairs = staircase(algorithm, square(100, 16), {});
      CAPTURE(algorithm.name);
      for (std::size_t p = 1; p < stairs.points.size(); ++p) {
        CHECK(stairs.points[p].sram > stairs.points[p - 1].sram);
        CHECK(stairs.points[p].moved() < stairs.points[p - 1].moved());
        CHECK(stairs.at(stairs.points[p].sram - Bytes(1)) == &stairs.points[p - 1]);
      }
      CHECK(stairs.at(stairs.points.front().sram - Bytes(1)) == nullptr);
      CHECK(stairs.at(Bytes(Int128{1} << 60)) == &stairs.points.back());
    }
  }

  TEST_CASE("no point of an envelope is below the lower bounds at its size") {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const Index d : {4, 16, 64}) {
        const Problem problem = square(600, d);
        std::vector<Staircase> all;
        for (const Algorithm& algorithm : algorithms(pass)) {
          all.push_back(staircase(algorithm, problem, {}));
        }
        for (const StairPoint& point : envelope(all).points) {
          const LowerBound bound = lower_bound(problem, NumberFormat::fp16, pass, point.sram);
          CHECK(point.read >= bound.read_bytes());
          CHECK(point.written >= bound.write_bytes());
        }
      }
    }
  }

  TEST_CASE("the envelope is the least staircase at every size") {
    const Problem problem = square(300, 32);
    std::vector<Staircase> all;
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      all.push_back(staircase(algorithm, problem, {}));
    }
    const Staircase merged = envelope(all);
    for (Index sram = 1; sram < 200000; sram += 97) {
      const StairPoint* best = merged.at(Bytes(sram));
      for (const Staircase& one : all) {
        const StairPoint* point = one.at(Bytes(sram));
        if (point == nullptr) continue;
        REQUIRE(best != nullptr);
        CHECK(best->moved() <= point->moved());
      }
    }
  }

  TEST_CASE("threads change nothing") {
    const Problem problem = square(200, 8);
    const Algorithm& algorithm = algorithm_named("small-cache");
    const Staircase one = staircase(algorithm, problem, {});
    const Staircase backwards =
        staircase(algorithm, problem, {}, [](Index count, const std::function<void(Index)>& body) {
          for (Index part = count; part-- > 0;) body(part);
        });
    REQUIRE(one.points.size() == backwards.points.size());
    for (std::size_t p = 0; p < one.points.size(); ++p) {
      CHECK(one.points[p].tile == backwards.points[p].tile);
      CHECK(one.points[p].sram == backwards.points[p].sram);
    }
  }

  TEST_CASE("block sizes that matter are the least for each number of blocks") {
    for (Index length = 1; length <= 300; ++length) {
      std::vector<Index> expected;
      for (Index size = 1; size <= length; ++size) {
        const bool fewer =
            size == 1 || Partition{length, size}.count() < Partition{length, size - 1}.count();
        if (fewer) expected.push_back(size);
      }
      CHECK(distinct_block_sizes(length) == expected);
    }
  }

  TEST_CASE("a masked search too large to be complete says so") {
    Problem problem = square(1 << 14, 64);
    problem.window_right = 0;
    CHECK_FALSE(tile_candidates("small-cache", problem).all);
    CHECK(tile_candidates("flash2", problem).all);
    CHECK(tile_candidates("flash2", problem).block_q.size() == std::size_t{1} << 14);
  }
}

TEST_SUITE("sim.envelope_facts") {
  StairPoint point(std::string_view algorithm, Index sram, Index bytes) {
    return {.algorithm = algorithm, .sram = Bytes(sram), .read = Bytes(bytes)};
  }

  TEST_CASE("takeovers crossings and knees of stairs worked by hand") {
    const Staircase a{.points = {point("a", 10, 100), point("a", 20, 60), point("a", 50, 20)}};
    const Staircase b{.points = {point("b", 5, 110), point("b", 20, 50), point("b", 30, 45)}};
    CHECK(takeovers(envelope({a, b})) ==
          std::vector<Takeover>{
              {Bytes(5), "b"}, {Bytes(10), "a"}, {Bytes(20), "b"}, {Bytes(50), "a"}});
    CHECK(crossing(a, b).first == Bytes(10));
    CHECK(crossing(a, b).for_good == Bytes(50));
    CHECK(crossing(b, a).first == Bytes(5));
    CHECK_FALSE(crossing(b, a).for_good.has_value());
    CHECK(knee(a) == Bytes(50));
    CHECK(knee_within(b, 0.1) == Bytes(30));
    CHECK(knee_within(b, 0.12) == Bytes(20));
  }

  TEST_CASE("a power law has its exponent") {
    Staircase law;
    for (Index sram = 1000; sram < 1000000; sram += 1000) {
      law.points.push_back(point("a", sram, 7 + 1000000000 / sram));
    }
    CHECK(*slope(law, Bytes(1000), Bytes(900000), Bytes(7)) == doctest::Approx(-1).epsilon(0.001));
    CHECK_FALSE(slope(law, Bytes(1), Bytes(2), Bytes(0)).has_value());
  }

  TEST_CASE("flash2 has the constant 4 and flash1 the constant 6 on its tiles that fill M") {
    constexpr double kN = 1 << 17;
    constexpr double kD = 64;
    constexpr Index kWords = 64 * 64 * 64;  // 64 d^2
    const Problem problem = square(1 << 17, 64);
    const auto constant = [&](const char* algorithm) {
      return *flash_constant(staircase(algorithm_named(algorithm), problem, {}), problem,
                             NumberFormat::fp16, Bytes(2 * kWords));
    };
    const double unit = kN * kN * kD * kD / kWords;
    // r (2 d + 4) + 2 d words hold r queries; fp32 statistics are two words each.
    const double rows = (kWords - 2 * kD) / (2 * kD + 4);
    const double flash2 = (2 * kN * kD + 2 * kN + 2 * kN * kD * kN / rows) / unit;
    const double flash2_more = 2 * kN * kD / unit;  // one block of queries more
    CHECK(constant("flash2") >= flash2);
    CHECK(constant("flash2") <= flash2 + 2 * flash2_more);
    CHECK(flash2 == doctest::Approx(4 * (1 + 2 / kD) / (1 - 2 * kD / kWords) + 2 * kWords / kN / kD)
                        .epsilon(0.001));
    // c (2 d + 1) + 2 d + 3 words hold c keys; a visit moves q, o twice and four statistics.
    const double keys = (kWords - 2 * kD - 3) / (2 * kD + 1);
    const double flash1_more = (3 * kN * kD + 8 * kN) / unit;
    const double flash1 = 2 * kN * kD / unit + flash1_more * kN / keys;
    CHECK(constant("flash1") >= flash1);
    CHECK(constant("flash1") <= flash1 + 2 * flash1_more);
  }

  TEST_CASE("the best small-cache tile has the constant 4 up to what its panels take") {
    constexpr Index kN = 4096;
    constexpr Index kD = 512;
    const Problem problem = square(kN, kD);
    const Staircase small = staircase(algorithm_named("small-cache"), problem, {});
    // Scores are written once, O and an fp32 lse as well.
    const Bytes fixed(2 * Int128{kN} * kN + 2 * Int128{kN} * kD + 4 * kN);
    for (const Index b : {64, 128, 256}) {
      // A square tile of b rows needs b b + 5 b words: three statistics, and panels of a column.
      const Bytes sram(2 * (b * b + 5 * b));
      const double constant =
          *small_cache_constant(small, problem, NumberFormat::fp16, sram, fixed);
      CAPTURE(b);
      // c r <= M, so that d N^2 (2 / c + 2 / r) is at least 4 d N^2 / sqrt(M).
      CHECK(constant >= 4);
      // Both sides are equal where this tile is the best: a few roundings apart.
      CHECK(constant <= 4 * std::sqrt(1 + 5.0 / static_cast<double>(b)) * (1 + 1e-14));
    }
  }
}

}  // namespace flashbound
