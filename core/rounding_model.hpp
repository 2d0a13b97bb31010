// How a program rounds under a recipe, as the error bound (core/error_bound.hpp) needs it: for
// every role of a number the relative error of one rounding, and the absolute one where a result
// falls below the normal numbers.
#pragma once

#include "core/number_format.hpp"
#include "core/program.hpp"
#include "core/recipe.hpp"
#include "core/schedule.hpp"

#include <optional>

namespace flashbound {

struct FormatModel {
  double unit_roundoff = 0;  // u: 2^-p to nearest, 2^(1-p) otherwise
  double underflow = 0;      // h: largest error of a result below the normal numbers
  double smallest_normal = 0;
  double largest = 0;
};

// Of sums of products.
struct SumModel {
  FormatModel product{};  // u = 0 where products are exact
  FormatModel sum{};
  // The terms of one tile are at most so deep in its tree (pairwise); 0: as deep as there are
  // terms.
  double depth = 0;
  // tensor_core: terms added at once, and what cutting takes then, relative to all magnitudes.
  Index block = 0;
  double cut = 0;
};

struct RoundingModel {
  FormatModel scores{}, statistics{}, probabilities{}, accumulator{}, stored{};
  SumModel scores_product{}, values_product{};
  // Relative errors of library functions, their last rounding included. For fp64 and fp32, whose
  // functions are the C library's: one ulp is at most 2 u, and the GNU C library manual (Known
  // Maximum Errors in Math Functions) lists 1 ulp for exp and log and 2 ulp for tanh on x86_64.
  // Known errors are not proven ones: tanh, the least accurate, is granted a third. Over all fp32
  // arguments that occur here the worst are 1.0 u (exp), 1.4 u (log) and 2.9 u (tanh).
  double weight_error = 0;  // exp of s - m
  double factor_error = 0;  // exp of m_old - m_new
  double log_error = 0;
  double tanh_error = 0;
  // A weight, and a factor, may be lost below these. Weights are in units of exp(s - m).
  double weight_underflow = 0;
  double factor_underflow = 0;
  double argument_roundings = 1;  // of s - m on its way to the exponential
  bool base_two = false;          // s and m are scaled apart: errors relative to m, too
  double offset = 0;              // ln of the common factor of all weights
  double threshold = 0;           // ln of the largest weight
  bool rounded_operands = false;  // weights are rounded again as operands, after their sum is taken
  bool scores_stored = false;     // logits and normalised weights are rounded to `stored`
  bool weights_normalised = false;  // weights are divided by their sum before they meet values
  double weight_largest = 0;        // largest weight that the recipe's exponential can give
  // Weights and their sum (or maximum) are not of the same numbers: of scores before and after they
  // were stored (small-cache), or drawn twice by stochastic rounding (standard-tiled).
  bool sum_of_other_scores = false;
  bool output_reloaded = false;     // O is divided, and stored, at every update
  Index updates = 0;                // U: times a row is folded, rescaled or merged, at most
  Index score_roundings = 0;        // of a score between the products that it is accumulated from
  Index accumulator_roundings = 0;  // the same of O
};

// The reference's own arithmetic: fp64, no rescales.
RoundingModel reference_rounding();

// `program` under `recipe` on this schedule. nullopt where the derivation does not cover the
// recipe: a shift other than the maximum, statistics narrower than scores, a polynomial of scores
// wider than fp32. Inputs must be those of
// rounded_inputs() (core/quantization.hpp).
std::optional<RoundingModel> program_rounding(const Recipe& recipe, const Program& program,
                                              const Schedule& schedule);
// Whatever forward program it is, in uniform_recipe(format), fp64 or fp32 (others throw
// ConfigError). Inputs must be exact in the format.
RoundingModel program_rounding(NumberFormat format, const Schedule& schedule);

}  // namespace flashbound
