#include "core/error_metrics.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <cmath>

namespace flashbound {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

// log(n!) - log(sqrt(2 pi n) (n / e)^n), for n > 0: Stirling's series, whose first term left out
// is below 1e-14 from 16 on, and the definition before.
double stirling_error(double n) {
  if (n < 16) {
    double factorial = 1;
    for (int i = 2; i <= static_cast<int>(n); ++i) factorial *= i;
    return std::log(factorial) - (0.5 * std::log(kTwoPi * n) + n * std::log(n) - n);
  }
  const double s = 1 / (n * n);
  return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s / 1188)))) / n;
}

// x log(x / m) + m - x, for positive x. Near m the terms cancel; there, with v = (x - m) / (x + m),
// it is (x - m) v + 2 x (v^3 / 3 + v^5 / 5 + ...).
double deviance(double x, double m) {
  if (std::abs(x - m) >= 0.1 * (x + m)) return x * std::log(x / m) + m - x;
  const double v = (x - m) / (x + m);
  double sum = (x - m) * v;
  double power = 2 * x * v;
  for (int j = 1;; ++j) {
    power *= v * v;
    const double next = sum + power / (2 * j + 1);
    if (next == sum) return sum;
    sum = next;
  }
}

// C(n, k) / 2^n for k <= n - k, by C. Loader's saddle-point expansion ("Fast and accurate
// computation of binomial probabilities", 2000): differences of lgamma would lose the digits that
// log(n!) has before the point.
double fair_binomial(Index trials, Index successes) {
  if (successes == 0) {
    return std::ldexp(1.0, -static_cast<int>(std::min<Index>(trials, 5000)));  // 0 from 1075 on
  }
  const auto n = static_cast<double>(trials);
  const auto k = static_cast<double>(successes);
  const double log_ratio = stirling_error(n) - stirling_error(k) - stirling_error(n - k) -
                           deviance(k, n / 2) - deviance(n - k, n / 2);
  return std::exp(log_ratio) * std::sqrt(n / (kTwoPi * k * (n - k)));
}

// A sum that carries along what its additions round off (Neumaier 1974).
struct CompensatedSum {
  double sum = 0;
  double lost = 0;

  void add(double term) {
    const double next = sum + term;
    lost += std::abs(sum) >= std::abs(term) ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  // Once the sum overflowed, what was lost is NaN.
  double value() const { return std::isfinite(sum) ? sum + lost : sum; }
};

void count_sign(Bias& bias, double error) {
  if (error > 0) {
    ++bias.positive;
  } else if (error < 0) {
    ++bias.negative;
  } else {
    ++bias.zero;
  }
}

void conclude(Bias& bias, const CompensatedSum& sum, Index count) {
  if (count > 0) bias.mean = sum.value() / static_cast<double>(count);
  bias.sign_test_p = sign_test(bias.positive, bias.negative);
}

void count_nonfinite(ErrorMetrics& metrics, double computed, double exact) {
  if (std::isnan(computed) && std::isnan(exact)) {
    ++metrics.both_nan;
  } else if (computed == exact) {
    ++metrics.same_infinity;
  } else {
    ++metrics.nonfinite_mismatch;
  }
}

void count_size(ErrorMetrics& metrics, double error, double exact, const FloatFormat& output) {
  const double size = std::abs(error);
  const double ulps = size / ulp(output, exact);
  metrics.max_abs = std::max(metrics.max_abs, size);
  metrics.max_ulp = std::max(metrics.max_ulp, ulps);
  if (exact != 0) metrics.max_relative = std::max(metrics.max_relative, size / std::abs(exact));
  ++metrics.ulp_histogram[ulp_bin(ulps)];
}

bool both_finite(double computed, double exact) {
  return std::isfinite(computed) && std::isfinite(exact);
}

// Squares of the errors' shares of the largest neither overflow nor underflow where it matters.
double root_mean_square(std::span<const double> computed, std::span<const double> exact,
                        const ErrorMetrics& metrics) {
  if (metrics.max_abs == 0 || !std::isfinite(metrics.max_abs)) return metrics.max_abs;
  CompensatedSum squares;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    if (!both_finite(computed[i], exact[i])) continue;
    const double share = (computed[i] - exact[i]) / metrics.max_abs;
    squares.add(share * share);
  }
  return metrics.max_abs * std::sqrt(squares.value() / static_cast<double>(metrics.finite));
}

std::string edge_text(double edge) {
  if (std::isinf(edge)) return "inf";
  return edge == 0.5 ? "0.5" : std::to_string(static_cast<int>(edge));
}

}  // namespace

std::size_t ulp_bin(double ulps) {
  const auto edge = std::lower_bound(kUlpEdges.begin(), kUlpEdges.end(), ulps);
  return static_cast<std::size_t>(edge - kUlpEdges.begin());
}

std::string ulp_bin_name(std::size_t bin) {
  if (bin == 0) return "0";
  return "(" + edge_text(kUlpEdges[bin - 1]) + ", " + edge_text(kUlpEdges.at(bin)) + "]";
}

double sign_test(Index positive, Index negative) {
  const Index n = positive + negative;
  const Index fewer = std::min(positive, negative);
  if (2 * fewer == n) return 1;  // n = 0 included; and the two tails would share the middle
  // The tail from its largest term on; each is at most the one before it.
  double term = fair_binomial(n, fewer);
  double tail = term;
  for (Index k = fewer; k > 0 && term > 1e-18 * tail; --k) {
    term *= static_cast<double>(k) / static_cast<double>(n - k + 1);
    tail += term;
  }
  return std::min(1.0, 2 * tail);
}

ErrorMetrics error_metrics(std::span<const double> computed, std::span<const double> exact,
                           const FloatFormat& output) {
  if (computed.size() != exact.size()) {
    reject("computed values", std::to_string(computed.size()),
           "as many as exact ones (" + std::to_string(exact.size()) + ")");
  }
  ErrorMetrics metrics;
  CompensatedSum signed_sum;
  CompensatedSum magnitude_sum;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    ++metrics.count;
    if (!both_finite(computed[i], exact[i])) {
      count_nonfinite(metrics, computed[i], exact[i]);
      continue;
    }
    ++metrics.finite;
    const double error = computed[i] - exact[i];
    const double outward = exact[i] == 0 ? 0 : std::copysign(1.0, exact[i]) * error;
    count_size(metrics, error, exact[i], output);
    count_sign(metrics.signed_error, error);
    count_sign(metrics.magnitude_error, outward);
    signed_sum.add(error);
    magnitude_sum.add(outward);
  }
  metrics.rmse = root_mean_square(computed, exact, metrics);
  conclude(metrics.signed_error, signed_sum, metrics.finite);
  conclude(metrics.magnitude_error, magnitude_sum, metrics.finite);
  return metrics;
}

}  // namespace flashbound
