#include "experiments/numerics/qiu_yao_rows.hpp"

#include "core/exponential.hpp"
#include "core/float_format.hpp"
#include "experiments/random_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

namespace flashbound {
namespace {

constexpr Index kRows = 600;
constexpr Index kColumns = 64;  // of V, each an output
constexpr Index kKeys = 64;

const FloatFormat& bf16() {
  static const FloatFormat format = float_format(NumberFormat::bf16);
  return format;
}
const FloatFormat& fp32() {
  static const FloatFormat format = float_format(NumberFormat::fp32);
  return format;
}

double shift_of(const TiedRows& rows) {
  if (rows.shift == Shift::maximum || rows.ties < 2) return rows.maximum;
  return rows.maximum > 0 ? rows.shift_factor * rows.maximum : 0;
}

// exp(s - m) in fp32, rounded to bf16.
std::vector<double> weights_of(const TiedRows& rows, std::mt19937_64& engine) {
  std::vector<double> weights;
  for (Index j = 0; j < kKeys; ++j) {
    const bool tied = j % (kKeys / rows.ties) == 0 && j / (kKeys / rows.ties) < rows.ties;
    const double below = rows.gap + 2 * uniform(engine) - 1;
    const double logit = round_to(fp32(), rows.maximum - (tied ? 0 : below));
    const double difference = round_to(fp32(), logit - shift_of(rows));
    const double weight = exp_rounded(fp32(), Rounding::nearest_even, difference);
    weights.push_back(round_to(bf16(), weight));
  }
  return weights;
}

// P V accumulated in fp32, and the row sum too.
struct Fp32Sums {
  float product = 0;
  float row = 0;
};

Fp32Sums fp32_sums(std::span<const double> weights, std::span<const double> values) {
  Fp32Sums sums;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const auto weight = static_cast<float>(weights[j]);
    sums.product = std::fma(weight, static_cast<float>(values[j]), sums.product);
    sums.row += weight;
  }
  return sums;
}

double bf16_sum(std::span<const double> weights, std::span<const double> values) {
  double sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    sum = round_to(bf16(), sum + weights[j] * values[j]);  // products of bf16 numbers are exact
  }
  return sum;
}

// Computed less exact, in ulps of bf16 at the exact result.
double output_error(RoundedProduct product, std::span<const double> weights,
                    std::span<const double> values) {
  double exact = 0;
  double row_sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    exact += weights[j] * values[j];
    row_sum += weights[j];
  }
  double computed = 0;
  switch (product) {
    case RoundedProduct::once: computed = fp32_sums(weights, values).product; break;
    case RoundedProduct::every_addition: computed = bf16_sum(weights, values); break;
    case RoundedProduct::after_division: {
      const Fp32Sums sums = fp32_sums(weights, values);
      computed = sums.product / sums.row;
      exact /= row_sum;
      break;
    }
  }
  return (round_to(bf16(), computed) - exact) / ulp(bf16(), exact);
}

double row_errors(const TiedRows& rows, std::uint64_t seed, std::span<double> errors) {
  std::mt19937_64 engine(seed);
  const std::vector<double> weights = weights_of(rows, engine);
  std::vector<double> values(static_cast<std::size_t>(kKeys));
  for (double& error : errors) {
    for (double& value : values) value = -std::abs(round_to(bf16(), normal(engine)));
    error = output_error(rows.product, weights, values);
  }
  return *std::max_element(weights.begin(), weights.end());
}

Bias bias_of(const std::vector<double>& errors) {
  const std::vector<double> zeros(errors.size(), 0);
  return error_metrics(errors, zeros, bf16()).signed_error;
}

}  // namespace

std::string_view name(RoundedProduct product) {
  switch (product) {
    case RoundedProduct::once: return "once";
    case RoundedProduct::every_addition: return "every addition";
    case RoundedProduct::after_division: return "after division";
  }
  return "";
}

RowErrors tied_row_errors(const TiedRows& rows, const ParallelFor& parallel_for) {
  constexpr auto kRowSize = static_cast<std::size_t>(kColumns);
  std::vector<double> errors(static_cast<std::size_t>(kRows * kColumns));
  std::vector<double> largest(static_cast<std::size_t>(kRows));
  std::vector<double> means(static_cast<std::size_t>(kRows));
  parallel_for(kRows, [&](Index part) {
    const auto row = static_cast<std::size_t>(part);
    const std::span<double> own(errors.data() + row * kRowSize, kRowSize);
    largest[row] = row_errors(rows, row + 1, own);
    for (const double error : own) means[row] += error / static_cast<double>(kColumns);
  });
  return {*std::max_element(largest.begin(), largest.end()), bias_of(errors), bias_of(means)};
}

}  // namespace flashbound
