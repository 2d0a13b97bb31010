#include "core/floor_sum.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <random>

namespace flashbound {
namespace {

Int128 floor_sum_by_loop(Int128 n, Int128 a, Int128 b, Int128 m) {
  Int128 sum = 0;
  for (Int128 i = 0; i < n; ++i) sum += floor_div(a * i + b, m);
  return sum;
}

Int128 clamped_by_loop(Int128 n, Int128 a, Int128 b, Int128 m, Int128 top) {
  Int128 sum = 0;
  for (Int128 i = 0; i < n; ++i) sum += std::clamp<Int128>(floor_div(a * i + b, m), 0, top);
  return sum;
}

Index between(std::mt19937_64& engine, Index low, Index high) {
  return low + static_cast<Index>(engine() % static_cast<std::uint64_t>(high - low + 1));
}

}  // namespace

TEST_SUITE("core.floor_sum") {
  TEST_CASE("division rounds down or up for either sign") {
    for (Index a = -20; a <= 20; ++a) {
      for (Index b = 1; b <= 7; ++b) {
        const Int128 down = floor_div(a, b);
        const Int128 up = ceil_div(a, b);
        CHECK((down * b <= a && a < (down + 1) * b));
        CHECK((up * b >= a && a > (up - 1) * b));
      }
    }
  }

  TEST_CASE("a floor sum equals its loop for all small numbers") {
    for (Index n = 0; n <= 9; ++n) {
      for (Index a = 0; a <= 9; ++a) {
        for (Index b = -15; b <= 15; ++b) {
          for (Index m = 1; m <= 8; ++m) {
            CHECK(floor_sum(n, a, b, m) == floor_sum_by_loop(n, a, b, m));
            if (a == 0) continue;
            for (Index top = 0; top <= 6; top += 2) {
              CHECK(clamped_floor_sum(n, a, b, m, top) == clamped_by_loop(n, a, b, m, top));
            }
          }
        }
      }
    }
  }

  TEST_CASE("a floor sum equals its loop for large numbers") {
    std::mt19937_64 engine(1);
    constexpr Index kLarge = Index{1} << 33;
    for (int repeat = 0; repeat < 2000; ++repeat) {
      const Index n = between(engine, 0, 300);
      const Index a = between(engine, 1, kLarge);
      const Index b = between(engine, -kLarge * 100, kLarge * 100);
      const Index m = between(engine, 1, kLarge);
      const Index top = between(engine, 0, 400);
      CAPTURE(n);
      CAPTURE(a);
      CAPTURE(b);
      CAPTURE(m);
      CHECK(floor_sum(n, a, b, m) == floor_sum_by_loop(n, a, b, m));
      CHECK(clamped_floor_sum(n, a, b, m, top) == clamped_by_loop(n, a, b, m, top));
    }
  }

  TEST_CASE("first_at_least finds the first index that a loop finds") {
    std::mt19937_64 engine(2);
    for (int repeat = 0; repeat < 5000; ++repeat) {
      const Index n = between(engine, 0, 20);
      const Index a = between(engine, 1, 9);
      const Index b = between(engine, -60, 60);
      const Index m = between(engine, 1, 9);
      const Index bound = between(engine, -3, 8);
      Index first = 0;
      while (first < n && floor_div(a * first + b, m) < bound) ++first;
      CHECK(first_at_least(bound, n, a, b, m) == first);
    }
  }

  // Sum of floor(a i / m) over one period: ((a - 1)(m - 1) + gcd(a, m) - 1) / 2 (Graham, Knuth,
  // Patashnik, Concrete Mathematics, equation 3.32).
  TEST_CASE("a period of a floor sum is symmetric in slope and modulus beyond 64 bits") {
    const Int128 a = (Int128{1} << 40) - 87;
    const Int128 m = Int128{1} << 41;
    CHECK(floor_sum(m, a, 0, m) == (a - 1) * (m - 1) / 2);
    CHECK(floor_sum(m * 3, a * 3, 0, m * 3) == ((a * 3 - 1) * (m * 3 - 1) + 2) / 2);
    for (Index small_a = 1; small_a < 40; ++small_a) {
      for (Index small_m = 1; small_m < 40; ++small_m) {
        CHECK(floor_sum(small_m, small_a, 0, small_m) ==
              ((small_a - 1) * (small_m - 1) + std::gcd(small_a, small_m) - 1) / 2);
      }
    }
  }

  TEST_CASE("a floor sum that leaves 128 bits throws") {
    const Int128 huge = Int128{1} << 60;
    CHECK_THROWS_AS(floor_sum(huge, huge, 0, 1), CountOverflow);
  }
}

}  // namespace flashbound
