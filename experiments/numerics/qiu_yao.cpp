#include "core/float_format.hpp"
#include "experiments/numerics/claims.hpp"
#include "experiments/numerics/qiu_yao_claims.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace flashbound {
namespace {

constexpr double kExample = -4.703990459442139;
constexpr double kRounded = -4.71875;
constexpr double kError = -0.014759540557861328;

std::string bits_of(double x) {
  return fmt::format("{:#010x}", std::bit_cast<std::uint32_t>(static_cast<float>(x)));
}

ClaimResult worked_example(const ParallelFor&) {
  const FloatFormat bf16 = float_format(NumberFormat::bf16);
  const double sum = round_to(float_format(NumberFormat::fp32), kExample);
  const double rounded = round_to(bf16, sum);
  const double error = rounded - sum;  // exact: both are multiples of 2^-22
  // The two numbers of bf16 around it, and the tie between them.
  const double below = round_to(bf16, Rounding::toward_zero, sum);
  const double tie = below - ulp(bf16, below) / 2;
  const double beyond = sum - tie;
  ClaimTable table{{"quantity", "value", "fp32_bits"}, {}};
  const auto row = [&](const char* what, double value) {
    table.rows.push_back({what, fmt::format("{:.18g}", value), bits_of(value)});
  };
  row("fp32 sum", sum);
  row("rounded to bf16", rounded);
  row("error", error);
  row("bf16 number on the other side", below);
  row("tie between the two", tie);
  row("sum beyond the tie", beyond);
  const bool same = rounded == kRounded && error == kError;
  ClaimResult result{std::move(table), same ? Verdict::confirmed : Verdict::refuted, ""};
  result.argument = fmt::format(
      "{} rounds to {} with the error {:.18g}, {}. The sum lies {:.3g} beyond the tie {}, which a "
      "sum of two bf16 numbers of a binade below can hit exactly: what other weights add decides "
      "the tie. That is the mechanism of QY-03.",
      sum, rounded, error,
      same ? "bit for bit as published" : fmt::format("not {} and {:.18g}", kRounded, kError),
      std::abs(beyond), tie);
  return result;
}

constexpr std::array kClaims{
    NumericClaim{"QY-02", "Qiu and Yao 2025 (arXiv 2510.04212), worked example",
                 "an fp32 sum rounds to bf16 away from zero",
                 "-4.703990459442139 becomes -4.71875, an error of -0.014759540557861328",
                 worked_example},
    NumericClaim{"QY-03", "Qiu and Yao 2025 (arXiv 2510.04212), biased rounding error",
                 "where several weights of a row are exactly 1 and a column of V has one sign, "
                 "rounding P V to bf16 leans to larger magnitudes; where no weight is 1 it does "
                 "not",
                 "", tied_maxima_bias},
    NumericClaim{"QY-04", "Qiu and Yao 2025 (arXiv 2510.04212), stabilised flash attention",
                 "where a row's maximum rm is repeated, the shift beta rm (rm > 0, beta = 7) or 0 "
                 "(rm < 0) keeps all weights below 1: the same function in exact arithmetic, and "
                 "without the bias",
                 "beta in [2, 8], 7 used", shift_removes_bias},
    NumericClaim{"QY-05", "Qiu and Yao 2025 (arXiv 2510.04212), error of the gradient",
                 "delta = rowsum(dO o O) equals rowsum(dP o P); the error of O in bf16 enters dQ "
                 "as dQ_hp - dQ_lp = scale diag(delta_lp - delta_hp) P K",
                 "", delta_identity},
};

}  // namespace

std::span<const NumericClaim> qiu_yao_claims() { return kClaims; }

}  // namespace flashbound
