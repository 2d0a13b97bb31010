// The tile operations of the numeric machine in a processor's own arithmetic: the recipes fp64 and
// fp32, with matrix products by Eigen, whose sums are in no promised order.
#pragma once

#include "core/numeric_events.hpp"
#include "core/numeric_gradient_operations.hpp"
#include "core/numeric_operations.hpp"
#include "core/roled_tile.hpp"

namespace flashbound {

template <class T>
class PlainArithmetic {
 public:
  using Scalar = T;
  using Matrix = numeric::Matrix<T>;
  using Tile = RoledTile<T>;

  Matrix inputs(const numeric::Matrix<double>& values) { return values.template cast<T>(); }
  // A tensor of the forward pass that a backward pass reads; `statistics`: of one number a row.
  Matrix left_by_forward(const numeric::Matrix<double>& values, bool /*statistics*/) {
    return inputs(values);
  }
  T constant(double value) const { return static_cast<T>(value); }

  void multiply_transposed(Tile sum, Tile a, Tile b) {
    sum.values.noalias() += a.values * b.values.transpose();
  }
  void multiply(Tile sum, Tile a, Tile b) { sum.values.noalias() += a.values * b.values; }
  void multiply_visible(Tile sum, Tile a, Tile b, const Schedule& schedule,
                        const numeric::ScoreRegion& region) {
    numeric::multiply_visible(sum.values, a.values, b.values, schedule, region);
  }
  void logits(Matrix& scores, const numeric::ScoreModifiers<T>& modifiers, const Schedule& schedule,
              const numeric::ScoreRegion& region) {
    numeric::logits(scores, modifiers, schedule, region);
  }
  void row_max_update(Matrix& row_max, const Matrix& scores, Matrix* factor) {
    numeric::row_max_update(row_max, scores, factor, rescales_);
  }
  void exponentiate(Tile scores, const Matrix& row_max) {
    numeric::exponentiate(scores.values, row_max);
  }
  void rescale(Tile tile, const Matrix& factor) { numeric::rescale(tile.values, factor); }
  void row_sum_update(Matrix& row_sum, const Matrix& weights) {
    row_sum += weights.rowwise().sum();
  }
  void scale_add(Tile sum, const Matrix& factor, const Matrix& tile) {
    sum.values += factor.col(0).asDiagonal() * tile;
  }
  void divide(Tile tile, const Matrix& row_sum) { numeric::divide(tile.values, row_sum); }
  void lse(Matrix& result, const Matrix& row_max, const Matrix& row_sum, SumOf /*sum_of*/) {
    numeric::lse(result, row_max, row_sum);
  }
  void multiply_left_transposed(Tile sum, Tile a, Tile b, const Schedule& schedule,
                                const numeric::ScoreRegion& region) {
    numeric::multiply_left_transposed(sum.values, a.values, b.values, schedule, region);
  }
  void row_dot(Matrix& result, const Matrix& a, const Matrix& b) {
    result = a.cwiseProduct(b).rowwise().sum();
  }
  void row_dot_visible(Matrix& result, const Matrix& a, const Matrix& b, const Schedule& schedule,
                       const numeric::ScoreRegion& region) {
    numeric::row_dot_visible(result, a, b, schedule, region);
  }
  void softmax_gradient(Matrix& dp, const Matrix& p, const Matrix& delta, const Schedule& schedule,
                        const numeric::ScoreRegion& region) {
    numeric::softmax_gradient(dp, p, delta, schedule, region);
  }
  void logits_gradient(Matrix& ds, const Matrix* q, const Matrix* k,
                       const numeric::ScoreModifiers<T>& modifiers, const Schedule& schedule,
                       const numeric::ScoreRegion& region) {
    numeric::logits_gradient(ds, q, k, modifiers, schedule, region);
  }

  const Matrix& stored(const Matrix& tile, Width /*width*/) const { return tile; }
  T sink_sum(SumOf /*sum_of*/) const { return 1; }
  double log_weight_offset() const { return 0; }

  RangeEvents events() const { return {}; }
  const RescaleCount& rescales() const { return rescales_; }

 private:
  RescaleCount rescales_;
};

}  // namespace flashbound
