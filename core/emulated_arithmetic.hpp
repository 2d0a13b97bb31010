// The tile operations of the numeric machine in the arithmetic of a recipe (core/recipe.hpp).
//
// T is the carrier: float where every operation of the recipe can be done in float and rounded,
// else double. Results are a function of recipe, seed and operands alone: of no thread, lane width
// or processor, but for the library's log and tanh.
#pragma once

#include "core/emulated_exponential.hpp"
#include "core/emulated_gradients.hpp"
#include "core/emulated_sums.hpp"
#include "core/numeric_operations.hpp"
#include "core/program.hpp"
#include "core/recipe.hpp"
#include "core/roled_tile.hpp"
#include "core/rounder.hpp"

#include <limits>

namespace flashbound {

template <class T>
class EmulatedArithmetic {
 public:
  using Scalar = T;
  using Matrix = numeric::Matrix<T>;
  using Tile = RoledTile<T>;
  EmulatedArithmetic(const Recipe& recipe, std::uint64_t seed);
  // Its rounders draw from its own stream.
  EmulatedArithmetic(const EmulatedArithmetic&) = delete;
  EmulatedArithmetic& operator=(const EmulatedArithmetic&) = delete;

  Matrix inputs(const numeric::Matrix<double>& values);
  // A tensor of the forward pass that a backward pass reads; `statistics`: of one number a row.
  Matrix left_by_forward(const numeric::Matrix<double>& values, bool statistics) {
    const Rounder<T>& round = statistics ? statistics_ : stored_;
    return values.unaryExpr([&](double x) {
      const bool none = x == -std::numeric_limits<double>::infinity();  // as stored() keeps it
      return static_cast<T>(none ? x : round.of_double(x));
    });
  }
  // A number of the problem (scale, softcap, slope, sink) as the run has it.
  T constant(double value) const { return static_cast<T>(scores_.of_double(value)); }

  void multiply_transposed(Tile sum, Tile a, Tile b);
  void multiply(Tile sum, Tile a, Tile b);
  // Only terms whose pair is visible: where b may hold NaN.
  void multiply_visible(Tile sum, Tile a, Tile b, const Schedule& schedule,
                        const numeric::ScoreRegion& region);
  void logits(Matrix& scores, const numeric::ScoreModifiers<T>& modifiers, const Schedule& schedule,
              const numeric::ScoreRegion& region);
  void row_max_update(Matrix& row_max, const Matrix& scores, Matrix* factor);
  void exponentiate(Tile scores, const Matrix& row_max);
  void rescale(Tile tile, const Matrix& factor);
  void row_sum_update(Matrix& row_sum, const Matrix& weights);
  void scale_add(Tile sum, const Matrix& factor, const Matrix& tile);
  void divide(Tile tile, const Matrix& row_sum);
  void lse(Matrix& result, const Matrix& row_max, const Matrix& row_sum, SumOf sum_of);

  void multiply_left_transposed(Tile sum, Tile a, Tile b, const Schedule& schedule,
                                const numeric::ScoreRegion& region) {
    emulated::multiply_left_transposed(sum.values, as_operand(a), as_operand(b), {schedule, region},
                                       values_product_);
    round_sums(sum, recipe_.values_product.sum);
  }
  void row_dot(Matrix& result, const Matrix& a, const Matrix& b) {
    emulated::row_dot(result, a, b, nullptr, statistics_);
  }
  void row_dot_visible(Matrix& result, const Matrix& a, const Matrix& b, const Schedule& schedule,
                       const numeric::ScoreRegion& region) {
    const emulated::Pairs pairs{schedule, region};
    emulated::row_dot(result, a, b, &pairs, statistics_);
  }
  void softmax_gradient(Matrix& dp, const Matrix& p, const Matrix& delta, const Schedule& schedule,
                        const numeric::ScoreRegion& region) {
    emulated::softmax_gradient(dp, p, delta, {schedule, region}, scores_);
  }
  void logits_gradient(Matrix& ds, const Matrix* q, const Matrix* k,
                       const numeric::ScoreModifiers<T>& modifiers, const Schedule& schedule,
                       const numeric::ScoreRegion& region) {
    const bool recompute = modifiers.softcap != 0 && q != nullptr && k != nullptr;
    Matrix products;
    if (recompute) {
      products = Matrix::Zero(ds.rows(), ds.cols());
      accumulate_products<T>(products, *q, k->transpose(), scores_product_);
    }
    emulated::logits_gradient(ds, recompute ? &products : nullptr, modifiers, {schedule, region},
                              scores_);
  }

  // What a store leaves in HBM.
  Matrix stored(const Matrix& tile, Width width);
  // The row sum that a sink alone gives, and the natural logarithm of what row sums carry beyond
  // the sum of exp(s - m).
  T sink_sum(SumOf sum_of) const { return sum_of == SumOf::weights ? sink_sum_ : T{1}; }
  double log_weight_offset() const;

  const RangeEvents& events() const { return events_; }
  const RescaleCount& rescales() const { return rescales_; }

 private:
  const Rounder<T>& rounder(TileRole role) const;
  Rounder<T> rounder(const FloatFormat& format);
  ProductArithmetic<T> product(const Accumulation& how);
  // A score tile as an operand of a product.
  Matrix as_operand(Tile tile);
  void round_sums(Tile sum, const FloatFormat& sums);
  T pairwise_sum(const Matrix& weights, Index row, Index first, Index last);
  T logit(T product, const numeric::ScoreModifiers<T>& modifiers, Index distance);
  T maximum(const Matrix& scores, Index row) const;

  Recipe recipe_;
  OperandRange operands_;
  RandomStream stream_;
  RangeEvents events_;
  RescaleCount rescales_;
  Rounder<T> inputs_, scores_, statistics_, probabilities_, accumulator_, stored_;
  ProductArithmetic<T> scores_product_, values_product_;
  EmulatedExponential<T> exponential_;
  // Constants, rounded to nearest whatever the recipe's rounding.
  T shift_factor_;          // as scores
  T threshold_, sink_sum_;  // as statistics
};

}  // namespace flashbound
