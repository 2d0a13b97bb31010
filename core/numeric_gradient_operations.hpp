// The tile operations of backward passes: plain functions on matrices of one arithmetic. A pair
// that the mask hides adds nothing, not even 0 x NaN, and gives nothing back.
#pragma once

#include "core/errors.hpp"
#include "core/numeric_operations.hpp"

namespace flashbound::numeric {

// sum += p^T x, where p holds scores and x has a row for each of their queries.
template <class Scalar>
void multiply_left_transposed(Matrix<Scalar>& sum, const Matrix<Scalar>& p, const Matrix<Scalar>& x,
                              const Schedule& schedule, const ScoreRegion& region) {
  // A hidden pair is 0 in p, or NaN where its row is divided by NaN.
  if (p.allFinite() && x.allFinite()) {
    sum.noalias() += p.transpose() * x;
    return;
  }
  for (Index r = 0; r < p.rows(); ++r) {
    for (Index c = 0; c < p.cols(); ++c) {
      if (schedule.visible(region.rows.begin + r, region.keys.begin + c)) {
        sum.row(c) += p(r, c) * x.row(r);
      }
    }
  }
}

// result = row sums of a o b, where both hold scores.
template <class Scalar>
void row_dot_visible(Matrix<Scalar>& result, const Matrix<Scalar>& a, const Matrix<Scalar>& b,
                     const Schedule& schedule, const ScoreRegion& region) {
  result.setZero();
  for (Index r = 0; r < a.rows(); ++r) {
    for (Index c = 0; c < a.cols(); ++c) {
      if (schedule.visible(region.rows.begin + r, region.keys.begin + c)) {
        result(r, 0) += a(r, c) * b(r, c);
      }
    }
  }
}

// From dP to the gradient of the logits.
template <class Scalar>
void softmax_gradient(Matrix<Scalar>& dp, const Matrix<Scalar>& p, const Matrix<Scalar>& delta,
                      const Schedule& schedule, const ScoreRegion& region) {
  const bool masked = schedule.coverage(region.rows, region.keys) != Coverage::full;
  for (Index r = 0; r < dp.rows(); ++r) {
    for (Index c = 0; c < dp.cols(); ++c) {
      const bool hidden = masked && !schedule.visible(region.rows.begin + r, region.keys.begin + c);
      dp(r, c) = hidden ? Scalar{0} : p(r, c) * (dp(r, c) - delta(r, 0));
    }
  }
}

// From the gradient of the logits to that of q k^T. q and k are nullptr where the program has them
// no longer; a softcap's slope depends on them.
template <class Scalar>
void logits_gradient(Matrix<Scalar>& ds, const Matrix<Scalar>* q, const Matrix<Scalar>* k,
                     const ScoreModifiers<Scalar>& modifiers, const Schedule& schedule,
                     const ScoreRegion& region) {
  const bool softcap = modifiers.softcap != 0;
  if (softcap && (q == nullptr || k == nullptr)) {
    throw ConfigError("softcap: needs a program that has Q and K where it takes their gradient");
  }
  Matrix<Scalar> products;
  if (softcap) products = *q * k->transpose();
  const bool masked = schedule.coverage(region.rows, region.keys) != Coverage::full;
  for (Index r = 0; r < ds.rows(); ++r) {
    for (Index c = 0; c < ds.cols(); ++c) {
      if (masked && !schedule.visible(region.rows.begin + r, region.keys.begin + c)) {
        ds(r, c) = 0;
        continue;
      }
      Scalar slope = modifiers.scale;
      if (softcap) {
        const Scalar capped = std::tanh(modifiers.scale * products(r, c) / modifiers.softcap);
        slope *= (Scalar{1} - capped) * (Scalar{1} + capped);
      }
      ds(r, c) *= slope;
    }
  }
}

}  // namespace flashbound::numeric
