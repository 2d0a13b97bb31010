// The sign test against sums of binomial coefficients, each in an arithmetic of its own.
#include "core/error_metrics.hpp"

#include <boost/math/distributions/binomial.hpp>
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace flashbound {
namespace {

// Relative error allowed to sign_test: exponents of up to 700 are rounded to 2^-53 of themselves in
// each of a few terms, and exp() magnifies these absolute errors into relative ones.
constexpr double kTolerance = 2e-12;

bool close(double a, double b, double tolerance = kTolerance) {
  return std::abs(a - b) <= tolerance * std::abs(b);
}

// Twice the tail in integers: binomial coefficients by Pascal's rule, exact for n <= 60.
double by_integers(Index n, Index fewer) {
  std::vector<std::uint64_t> row{1};
  for (Index i = 0; i < n; ++i) {
    row.push_back(1);
    for (std::size_t k = row.size() - 2; k > 0; --k) row[k] += row[k - 1];
  }
  std::uint64_t tail = 0;
  for (Index k = 0; k <= fewer; ++k) tail += row[static_cast<std::size_t>(k)];
  return std::min(1.0, std::ldexp(static_cast<double>(tail), 1 - static_cast<int>(n)));
}

// The same from the far end of the tail, whose term 2^-n is a normal long double up to n = 16000.
double by_long_double(Index n, Index fewer) {
  long double term = std::ldexp(1.0L, -static_cast<int>(n));
  long double tail = term;
  for (Index k = 1; k <= fewer; ++k) {
    term = term * static_cast<long double>(n - k + 1) / static_cast<long double>(k);
    tail += term;
  }
  return static_cast<double>(std::min(1.0L, 2 * tail));
}

}  // namespace

TEST_SUITE("core.error_metrics") {
  TEST_CASE("sign tests equal sums of integers up to sixty trials") {
    for (Index n = 0; n <= 60; ++n) {
      for (Index positive = 0; positive <= n; ++positive) {
        CAPTURE(n);
        CAPTURE(positive);
        const double expected = by_integers(n, std::min(positive, n - positive));
        CHECK(close(sign_test(positive, n - positive), expected));
        CHECK(sign_test(positive, n - positive) == sign_test(n - positive, positive));
      }
    }
  }

  TEST_CASE("sign tests are known by hand where there are few trials") {
    CHECK(sign_test(0, 0) == 1);
    CHECK(sign_test(1, 0) == 1);
    CHECK(close(sign_test(5, 0), 2.0 / 32));
    CHECK(close(sign_test(9, 1), 22.0 / 1024));
    CHECK(sign_test(7, 7) == 1);
  }

  TEST_CASE("sign tests are exact far into the tails") {
    REQUIRE(std::numeric_limits<long double>::min_exponent < -16000);
    Index tails = 0;
    for (Index n : {15, 16, 17, 100, 999, 1000, 1001, 4096, 15000}) {
      for (Index fewer = 0; 2 * fewer <= n; fewer += std::max<Index>(1, n / 37)) {
        const double expected = by_long_double(n, fewer);
        if (expected < 1e-300) continue;
        if (expected < 1e-200) ++tails;
        CAPTURE(n);
        CAPTURE(fewer);
        CHECK(close(sign_test(fewer, n - fewer), expected));
      }
    }
    CHECK(tails > 3);
    CHECK(close(sign_test(0, 997), std::ldexp(1.0, -996)));
    CHECK(sign_test(0, 100000) == 0);
    CHECK(sign_test(1000, 100000) == 0);
  }

  // Boost sums nothing: it evaluates the incomplete beta function by continued fractions.
  TEST_CASE("sign tests of many trials agree with the incomplete beta function") {
    for (Index n : {Index{100001}, Index{10000000}, Index{1000000000}}) {
      const double deviation = std::sqrt(static_cast<double>(n)) / 2;
      for (double distance : {0.01, 1.0, 3.0, 6.0, 20.0}) {
        const Index fewer = static_cast<Index>(static_cast<double>(n) / 2 - distance * deviation);
        CAPTURE(n);
        CAPTURE(distance);
        const boost::math::binomial_distribution<double> fair(static_cast<double>(n), 0.5);
        const double expected = 2 * boost::math::cdf(fair, static_cast<double>(fewer));
        CHECK(close(sign_test(fewer, n - fewer), expected, 1e-9));
      }
    }
  }

  // Terms of the central limit theorem's next order vanish by symmetry; what remains is O(1/n).
  TEST_CASE("sign tests of many trials approach the normal distribution's") {
    constexpr Index kTrials = 100000000;
    for (Index distance : {1, 1000, 5000, 15000}) {
      const double z = (static_cast<double>(distance) - 0.5) / (std::sqrt(1.0 * kTrials) / 2);
      const double p = sign_test(kTrials / 2 - distance, kTrials / 2 + distance);
      CHECK(close(p, std::erfc(z / std::sqrt(2.0)), 1e-6));
    }
  }
}

}  // namespace flashbound
