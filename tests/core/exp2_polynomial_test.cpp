// The polynomials of exp2: their coefficients found again, their errors, and their edges.
#include "core/exponential.hpp"

#include <Eigen/Dense>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace flashbound {
namespace {

using Real = long double;
using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
using Square = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
constexpr int kPoints = 65536;

// Of c_0 + c_1 f + ..., relative to 2^f.
Real relative_error(const std::vector<Real>& c, Real f) {
  Real sum = 0;
  for (std::size_t k = c.size(); k-- > 0;) sum = sum * f + c[k];
  return sum / std::exp2(f) - 1;
}

// 1 + sum c_k f^k = 2^f (1 + sign E) at all points, with alternating signs.
std::vector<Real> levelled(const std::vector<Real>& points) {
  const auto n = static_cast<Eigen::Index>(points.size());
  Square a(n, n);
  Vector b(n);
  for (Eigen::Index row = 0; row < n; ++row) {
    const Real f = points[static_cast<std::size_t>(row)];
    for (Eigen::Index k = 1; k < n; ++k) a(row, k - 1) = std::pow(f, static_cast<Real>(k));
    a(row, n - 1) = (row % 2 == 0 ? -1 : 1) * std::exp2(f);
    b(row) = std::exp2(f) - 1;
  }
  const Vector solution = a.fullPivLu().solve(b);
  std::vector<Real> c{1};
  for (Eigen::Index k = 0; k + 1 < n; ++k) c.push_back(solution(k));
  return c;
}

// The points of (0, 1] where the error is locally largest, one for each sign.
std::vector<Real> extremes(const std::vector<Real>& c) {
  std::vector<Real> found;
  Real best = 0;
  Real where = 0;
  for (int at = 1; at <= kPoints; ++at) {
    const Real f = static_cast<Real>(at) / kPoints;
    const Real error = relative_error(c, f);
    if (best != 0 && std::signbit(error) != std::signbit(best)) {
      found.push_back(where);
      best = 0;
    }
    if (std::abs(error) >= std::abs(best)) {
      best = error;
      where = f;
    }
  }
  found.push_back(where);
  return found;
}

// Remez' exchange: the least largest relative error on [0, 1] with c_0 = 1. The error vanishes at
// 0, so `degree` unknowns and the error itself are levelled at degree + 1 points.
std::vector<Real> minimax(int degree) {
  std::vector<Real> points;
  for (int i = 1; i <= degree + 1; ++i) {
    points.push_back((1 - std::cos(std::numbers::pi_v<Real> * i / (degree + 1))) / 2);
  }
  std::vector<Real> c;
  for (int round = 0; round < 12; ++round) {
    c = levelled(points);
    points = extremes(c);
    REQUIRE(points.size() == static_cast<std::size_t>(degree) + 1);
  }
  return c;
}

std::vector<Real> coefficients(int degree) {
  const auto c = exp2_coefficients(degree);
  return {c.begin(), c.end()};
}

Real largest_error(const std::vector<Real>& c) {
  Real largest = 0;
  for (int at = 0; at < kPoints; ++at) {
    largest = std::max(largest, std::abs(relative_error(c, static_cast<Real>(at) / kPoints)));
  }
  return largest;
}

}  // namespace

TEST_SUITE("core.exponential") {
  TEST_CASE("coefficients are those of a Remez exchange rounded to fp32") {
    for (const int degree : {1, 2, 4, 5}) {
      CAPTURE(degree);
      const std::vector<Real> best = minimax(degree);
      const auto c = exp2_coefficients(degree);
      REQUIRE(c.size() == best.size());
      for (std::size_t k = 0; k < c.size(); ++k) {
        CAPTURE(k);
        CHECK(c[k] == static_cast<float>(best[k]));
      }
    }
  }

  TEST_CASE("the published cubic has its published error and is near the best") {
    // FlashAttention-4 (arXiv 2603.05451): 8.8e-5 on the interval; the best with c_0 = 1: 8.56e-5.
    const Real published = largest_error(coefficients(3));
    CHECK(std::abs(published - 8.76e-5L) < 0.005e-5L);
    const Real best = largest_error(minimax(3));
    CHECK(best < published);
    CHECK(published < 1.03L * best);
  }

  TEST_CASE("the stated errors are upper bounds and tight") {
    for (int degree = 1; degree <= 5; ++degree) {
      CAPTURE(degree);
      const Real actual = largest_error(coefficients(degree));
      const auto stated = static_cast<Real>(exp2_polynomial_error(degree));
      CAPTURE(static_cast<double>(actual));
      CHECK(actual <= stated);
      CHECK(stated <= 1.05L * actual);
    }
  }

  TEST_CASE("the fp32 evaluation stays within the stated error and its own roundings") {
    // Horner's rule with fma: one rounding a step, of partial sums below 2.
    for (int degree = 1; degree <= 5; ++degree) {
      const double allowed = exp2_polynomial_error(degree) + 2 * degree * 0x1p-24;
      double worst = 0;
      for (int at = 0; at < kPoints; ++at) {
        const float t = -static_cast<float>(at) * (126.0F / kPoints);
        const double exact = std::exp2(static_cast<double>(t));
        const double got = static_cast<double>(exp2_polynomial(degree, t));
        worst = std::max(worst, std::abs(got / exact - 1));
      }
      CAPTURE(degree);
      CHECK(worst <= allowed);
    }
  }

  TEST_CASE("edges of the exponent") {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (int degree = 1; degree <= 5; ++degree) {
      for (int k = -126; k < 128; ++k) {
        CHECK(exp2_polynomial(degree, static_cast<float>(k)) == std::ldexp(1.0F, k));
      }
      CHECK(exp2_polynomial(degree, std::nextafter(-126.0F, -kInfinity)) == 0);
      CHECK(exp2_polynomial(degree, -1e30F) == 0);
      CHECK(exp2_polynomial(degree, -kInfinity) == 0);
      CHECK(exp2_polynomial(degree, 128) == kInfinity);
      CHECK(exp2_polynomial(degree, kInfinity) == kInfinity);
      CHECK(std::isfinite(exp2_polynomial(degree, std::nextafter(128.0F, 0.0F))));
      CHECK(std::isnan(exp2_polynomial(degree, kNan)));
      CHECK(exp2_polynomial(degree, -0x1p-149F) <= 1);
      CHECK(std::abs(exp2_polynomial(degree, -0x1p-30F) - 1) <= 2 * exp2_polynomial_error(degree));
    }
    CHECK_THROWS(exp2_coefficients(0));
    CHECK_THROWS(exp2_coefficients(6));
  }
}

}  // namespace flashbound
