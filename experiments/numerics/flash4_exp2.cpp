#include "core/exponential.hpp"
#include "core/float_format.hpp"
#include "experiments/numerics/flash4_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace flashbound {
namespace {

constexpr int kDegrees = 5;
constexpr int kPoints = 65536;  // i / 65536: all exact in fp32
constexpr int kPublishedDegree = 3;
constexpr double kPublishedError = 8.76e-5;
constexpr double kPublishedBf16Error = 3.898e-3;
constexpr double kPublishedExactBf16Error = 3.887e-3;
constexpr double kPublishedShare = 0.0099;

struct PolynomialErrors {
  double exact = 0;      // of the polynomial in fp64, relative, as all of these
  double fp32 = 0;       // by Horner's rule in fp32
  double bf16 = 0;       // that rounded to bf16
  double bf16_best = 0;  // the exact 2^x rounded to bf16
  int differing = 0;     // points where the two bf16 numbers differ
};

double polynomial(int degree, double x) {
  double sum = 0;
  const std::span<const float> c = exp2_coefficients(degree);
  for (std::size_t k = c.size(); k-- > 0;) sum = sum * x + static_cast<double>(c[k]);
  return sum;
}

PolynomialErrors polynomial_errors(int degree) {
  const FloatFormat bf16 = float_format(NumberFormat::bf16);
  PolynomialErrors errors;
  for (int i = 0; i < kPoints; ++i) {
    const double x = static_cast<double>(i) / kPoints;
    const double y = std::exp2(x);
    const auto fp32 = static_cast<double>(exp2_polynomial(degree, static_cast<float>(x)));
    const double narrow = round_to(bf16, fp32);
    const double best = exp2_rounded(bf16, Rounding::nearest_even, x);
    errors.exact = std::max(errors.exact, std::abs(polynomial(degree, x) / y - 1));
    errors.fp32 = std::max(errors.fp32, std::abs(fp32 / y - 1));
    errors.bf16 = std::max(errors.bf16, std::abs(narrow / y - 1));
    errors.bf16_best = std::max(errors.bf16_best, std::abs(best / y - 1));
    errors.differing += narrow != best ? 1 : 0;
  }
  return errors;
}

double share(const PolynomialErrors& errors) {
  return static_cast<double>(errors.differing) / kPoints;
}

// Equal to the digits printed.
bool agrees(double computed, double published, double last_digit) {
  return std::abs(computed - published) <= 0.51 * last_digit;
}

ClaimResult concluded(ClaimTable table, const PolynomialErrors& cubic) {
  const bool polynomial = agrees(cubic.exact, kPublishedError, 1e-7);
  const bool rounded = agrees(cubic.bf16, kPublishedBf16Error, 1e-6) &&
                       agrees(cubic.bf16_best, kPublishedExactBf16Error, 1e-6);
  const bool differing = agrees(share(cubic), kPublishedShare, 1e-4);
  ClaimResult result{std::move(table), Verdict::confirmed, ""};
  if (!polynomial || !rounded || !differing) {
    result.verdict = cubic.bf16 < 1.01 * cubic.bf16_best ? Verdict::qualified : Verdict::refuted;
  }
  result.argument = fmt::format(
      "At the {} points i/{} of [0, 1) the cubic errs by {:.3e} ({:.3e} with its steps rounded "
      "to fp32); rounded to bf16 by {:.3e}, where the exact 2^x rounded errs by {:.3e}, and {:.2f} "
      "% "
      "of the points round differently. {} The rounding to bf16 hides the polynomial, whose error "
      "is {:.0f} times smaller; differences occur only where 2^x is within that error of a tie.",
      kPoints, kPoints, cubic.exact, cubic.fp32, cubic.bf16, cubic.bf16_best, 100 * share(cubic),
      result.verdict == Verdict::confirmed ? "All four published figures come out."
                                           : "Not all of the published figures come out.",
      cubic.bf16_best / cubic.fp32);
  return result;
}

}  // namespace

ClaimResult exp2_by_polynomial(const ParallelFor& parallel_for) {
  std::array<PolynomialErrors, kDegrees> errors{};
  parallel_for(kDegrees, [&](Index i) {
    errors[static_cast<std::size_t>(i)] = polynomial_errors(static_cast<int>(i) + 1);
  });
  ClaimTable table{{"degree", "max_rel_error", "max_rel_error_fp32", "max_rel_error_bf16",
                    "max_rel_error_exact_in_bf16", "differing_bf16_percent"},
                   {}};
  for (int degree = 1; degree <= kDegrees; ++degree) {
    const PolynomialErrors& e = errors[static_cast<std::size_t>(degree - 1)];
    table.rows.push_back({fmt::format("{}", degree), fmt::format("{:.3e}", e.exact),
                          fmt::format("{:.3e}", e.fp32), fmt::format("{:.3e}", e.bf16),
                          fmt::format("{:.3e}", e.bf16_best),
                          fmt::format("{:.2f}", 100 * share(e))});
  }
  return concluded(std::move(table), errors[kPublishedDegree - 1]);
}

}  // namespace flashbound
