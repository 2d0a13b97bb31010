// A recipe: in which arithmetic a program runs. A plain value, so that it may come from a name, a
// file or a script, and the same program runs under all of them.
//
// What a recipe says of a number is decided by the role that the program gives its tile
// (core/program.hpp): operands are `inputs`, scores `scores`, row statistics `statistics`,
// accumulators `accumulator`; a score tile is rounded to `probabilities` where it is an operand of
// a product. Tensors in HBM are rounded to `stored`, those of row statistics to `statistics`,
// partial results to `accumulator`.
#pragma once

#include "core/float_format.hpp"
#include "core/number_format.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace flashbound {

enum class SumOrder {
  any,          // a library's matrix product: no promised order (fp64 and fp32 throughout only)
  sequential,   // term by term, onto what has been accumulated
  pairwise,     // the terms of one tile as a balanced tree, then onto what has been accumulated
  tensor_core,  // `block` terms and what has been accumulated at once, see below
};

// How sums of products are accumulated.
struct Accumulation {
  // Products are rounded to it; without, they are exact, as in FMA and in tensor cores (pairwise
  // sums then begin with products rounded to `sum`).
  std::optional<FloatFormat> product{};
  FloatFormat sum{};  // of every partial sum
  SumOrder order = SumOrder::sequential;
  Index block = 16;  // of tensor_core
  // Of tensor_core: significand bits kept, counted from the largest exponent among the terms of a
  // block and what has been accumulated. What lies lower is cut off in every term before they are
  // added exactly, and the sum is rounded toward zero (Fasi, Higham, Mikaitis and Pranesh 2021,
  // PeerJ Comput. Sci. 7:e330).
  int alignment_bits = 25;
  friend bool operator==(const Accumulation&, const Accumulation&) = default;
};

enum class ExponentialKind {
  correctly_rounded,  // exp of the rounded difference, rounded once
  hardware,           // 2^t, t = fma(s, log2 e, -m log2 e), subnormal results flushed to zero
  polynomial,         // the same t, 2^floor(t) times a polynomial of `degree` in its fraction
};
struct Exponential {
  ExponentialKind kind = ExponentialKind::correctly_rounded;
  int degree = 3;  // 1..5, of the polynomial
  friend bool operator==(const Exponential&, const Exponential&) = default;
};

enum class RescaleRule {
  always,                // every row at every step
  when_maximum_changes,  // rows whose maximum rose
  beyond_threshold,  // rows whose maximum rose by more than `threshold_log2`; the others keep the
                     // old one, and their weights may reach 2^threshold_log2
};
struct Rescale {
  RescaleRule rule = RescaleRule::when_maximum_changes;
  double threshold_log2 = 0;
  friend bool operator==(const Rescale&, const Rescale&) = default;
};

// What is subtracted from scores.
enum class Shift {
  maximum,
  // Qiu and Yao 2025 (arXiv 2510.04212): where the maximum of a block is repeated, `shift_factor`
  // times it when positive and 0 when negative, so that no weight is exactly 1.
  avoid_one,
};

// How inputs become numbers of the format `inputs`.
enum class Scaling { none, per_tensor, per_block };
struct Quantization {
  Scaling scaling = Scaling::none;  // so that the largest magnitude becomes the format's largest
  Index block_q = 64;               // rows that share a scale, of Q; per_block
  Index block_kv = 64;              // of K and V
  // Q and K times random signs and a Hadamard matrix first, which leaves q k^T as it is
  // (Shah et al. 2024, arXiv 2407.08608, section 3.3). head_dim must be a power of two.
  bool rotated = false;
  friend bool operator==(const Quantization&, const Quantization&) = default;
};
inline constexpr int kScaleBits = 8;  // significand bits of a scale
// Bits by which scaled inputs are longer than their format's numbers.
int scale_bits(const Quantization& quantization);

struct Recipe {
  std::string name;
  FloatFormat inputs{};
  FloatFormat scores{};
  FloatFormat statistics{};
  FloatFormat probabilities{};
  FloatFormat accumulator{};
  FloatFormat stored{};
  Accumulation scores_product{};            // q k^T, dO v^T
  Accumulation values_product{};            // P v and the products of the gradients
  SumOrder row_sum = SumOrder::sequential;  // in the format `statistics`
  bool sum_of_rounded = false;  // whether row_sum adds weights that are rounded to probabilities
  Exponential exponential{};
  Rescale rescale{};
  Shift shift = Shift::maximum;
  double shift_factor = 7;
  int weight_offset_log2 = 0;  // weights are exp(s - m) times two to it
  Rounding rounding = Rounding::nearest_even;
  Quantization quantization{};
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// Everything in one format, every operation rounded to it. fp64 and fp32 sum in any order.
Recipe uniform_recipe(NumberFormat format);
Recipe uniform_recipe(std::string name, const FloatFormat& format);

struct NamedRecipe {
  std::string_view name;
  std::string_view title;  // one line, with its source
  Recipe (*recipe)();
};
std::span<const NamedRecipe> recipes();
// A named recipe, or "all-FORMAT" with any format of parse_float_format: everything in it. Throws
// ConfigError listing the names.
Recipe recipe_named(std::string_view name);

// Throws ConfigError naming the field for what no machine can run.
void validate(const Recipe& recipe);

// JSON as documented in core/schemas.md. A text may start from a named recipe ("base") and change
// some fields. from_json validates; it throws ConfigError naming the field.
std::string to_json(const Recipe& recipe);
Recipe recipe_from_json(std::string_view text);

}  // namespace flashbound
