// Facts about stairs worked by hand, about stairs scanned byte by byte, and the laws of attention.
#include "sim/envelope_facts.hpp"

#include "core/closed_form.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace flashbound {
namespace {

StairPoint point(std::string_view algorithm, Index sram, Index bytes) {
  return {.algorithm = algorithm, .sram = Bytes(sram), .read = Bytes(bytes)};
}

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

// Some steps up to 200 bytes of fast memory, down from 300 bytes moved.
Staircase random_stairs(std::mt19937_64& engine, std::string_view name) {
  Staircase stairs;
  Index sram = 0;
  Index bytes = 300;
  for (std::uint64_t steps = 1 + engine() % 12; steps > 0; --steps) {
    sram += 1 + static_cast<Index>(engine() % 16);
    bytes -= 1 + static_cast<Index>(engine() % 24);
    stairs.points.push_back(point(name, sram, bytes));
  }
  return stairs;
}

// Whether `a` moves less than `b` with `sram` bytes.
bool less_at(const Staircase& a, const Staircase& b, Bytes sram) {
  const StairPoint* of_a = a.at(sram);
  const StairPoint* of_b = b.at(sram);
  return of_a != nullptr && (of_b == nullptr || of_a->moved() < of_b->moved());
}

// flash1 or flash2 on one tile.
Staircase one_tile(std::string_view algorithm, const Problem& problem, const Tile& tile,
                   Bytes sram) {
  const ClosedTraffic moved = closed_traffic(algorithm, problem, tile, NumberFormat::fp64);
  return {.points = {{algorithm, tile, sram, moved.read, moved.written}}};
}

}  // namespace

TEST_SUITE("sim.envelope_facts") {
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

  TEST_CASE("crossings and knees are what a scan of every byte finds") {
    std::mt19937_64 engine(7);
    for (int repeat = 0; repeat < 500; ++repeat) {
      const Staircase a = random_stairs(engine, "a");
      const Staircase b = random_stairs(engine, "b");
      Crossing expected;
      Bytes least;
      Bytes close;
      for (Index sram = 220; sram > 0; --sram) {
        const StairPoint* here = a.at(Bytes(sram));
        if (here != nullptr && here->moved() == a.points.back().moved()) least = Bytes(sram);
        if (here != nullptr && 4 * here->moved() <= 5 * a.points.back().moved()) {
          close = Bytes(sram);
        }
      }
      for (Index sram = 1; sram <= 220; ++sram) {
        const bool less = less_at(a, b, Bytes(sram));
        if (less && !expected.first) expected.first = Bytes(sram);
        if (less && !expected.for_good) expected.for_good = Bytes(sram);
        if (!less) expected.for_good.reset();
      }
      CHECK(crossing(a, b).first == expected.first);
      CHECK(crossing(a, b).for_good == expected.for_good);
      CHECK(knee(a) == least);
      CHECK(knee_within(a, 0.25) == close);
    }
  }

  TEST_CASE("powers of two have their exponents to the last digits") {
    for (const int fall : {1, 2}) {
      Staircase law;
      for (int k = 5; k < 20; ++k) {
        law.points.push_back(point("a", Index{1} << (2 * k), 9 + (Index{1} << (45 - fall * k))));
      }
      const Bytes high(Int128{1} << 38);
      // Sizes between the points count at the points themselves.
      CHECK(*slope(law, Bytes(1 << 10), high, Bytes(9)) ==
            doctest::Approx(-0.5 * fall).epsilon(1e-12));
    }
  }

  TEST_CASE("two samples are the ends whatever their logarithms round to") {
    for (Index low = 1000; low < 3000; ++low) {
      const Index high = 3 * low + 1;
      const Staircase ends{.points = {point("a", low, 80), point("a", high, 20)}};
      const double expected = std::log(20.0 / 80) / std::log(ratio(Bytes(high), Bytes(low)));
      const auto found = slope(ends, Bytes(low), Bytes(high), Bytes(0), 2);
      REQUIRE(found.has_value());
      CHECK(*found == doctest::Approx(expected).epsilon(1e-13));
    }
  }

  TEST_CASE("no slope comes of fewer than two sizes that fit") {
    const Staircase one{.points = {point("a", 10, 100)}};
    CHECK_FALSE(slope(one, Bytes(1), Bytes(9), Bytes(0)).has_value());
    CHECK_FALSE(slope(one, Bytes(10), Bytes(99), Bytes(0)).has_value());
    CHECK_FALSE(slope(one, Bytes(10), Bytes(99), Bytes(100)).has_value());
  }

  TEST_CASE("the published block sizes have the constants 8 and 12") {
    constexpr Index kN = 1 << 17;
    constexpr Index kD = 64;
    constexpr Index kWords = 1 << 18;
    constexpr Index kBlock = kWords / (4 * kD);  // M / 4d, of keys or of queries
    const Problem problem = square(kN, kD);
    const Bytes sram(Int128{8} * kWords);
    const auto constant = [&](std::string_view algorithm, const Tile& tile) {
      const Staircase stairs = one_tile(algorithm, problem, tile, sram);
      return *flash_constant(stairs, problem, NumberFormat::fp64, sram);
    };
    constexpr double kOperand = static_cast<double>(kWords) / kN / kD;  // N d in that unit
    // 2 N d + 3 N d Tc + 4 N Tc, and 2 N d + 2 N d Tr + N: whole numbers but for one division.
    CHECK(constant("flash1", {.block_q = kD, .block_kv = kBlock}) ==
          doctest::Approx(12 + 16.0 / kD + 2 * kOperand).epsilon(1e-15));
    CHECK(constant("flash2", {.block_q = kBlock, .block_kv = kBlock}) ==
          doctest::Approx(8 + (2 + 1.0 / kD) * kOperand).epsilon(1e-15));
  }

  TEST_CASE("flash2 less what moves once falls as the inverse of M") {
    constexpr Index kN = 1 << 17;
    constexpr Index kD = 64;
    const Problem problem = square(kN, kD);
    const Staircase stairs = staircase(algorithm_named("flash2"), problem, {NumberFormat::fp64});
    const Bytes low(Int128{8} * kD * kD);
    const Bytes high(Int128{kN} * kD);  // of M = N d / 8 words
    const Bytes once(8 * (2 * Int128{kN} * kD + kN));
    const double found = *slope(stairs, low, high, once);
    // M = r (2 d + 4) + 2 d words hold r = ceil(N / Tr) queries. So log Tr = c - log M + e, with e
    // from 0 to 1 / (r - 1) - log(1 - 2 d / M), most at the least M. A slope is off by no more than
    // half of that a standard deviation of log M, which for even samples is their width over
    // sqrt(12), and less by as much as a sample moves down to its point.
    double gap = 0;
    for (std::size_t p = 1; p < stairs.points.size(); ++p) {
      const StairPoint& below = stairs.points[p - 1];
      if (stairs.points[p].sram < low || below.sram > high) continue;
      gap = std::max(gap, std::log(ratio(stairs.points[p].sram, below.sram)));
    }
    const auto least = static_cast<double>(stairs.at(low)->tile.block_q);
    const double words = least * (2 * kD + 4) + 2 * kD;
    const double error = 1 / (least - 1) - std::log(1 - 2 * kD / words);
    const double deviation = std::log(ratio(high, low)) / std::sqrt(12.0) - gap;
    CHECK(std::abs(found + 1) <= error / 2 / deviation);
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
