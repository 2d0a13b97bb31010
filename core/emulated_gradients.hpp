// The tile operations of backward passes in emulated arithmetic;
// core/numeric_gradient_operations.hpp has them in a processor's own. A pair that the mask hides
// adds nothing and gives nothing back.
#pragma once

#include "core/emulated_sums.hpp"
#include "core/errors.hpp"
#include "core/numeric_operations.hpp"
#include "core/rounder.hpp"

#include <cmath>

namespace flashbound::emulated {

using numeric::Matrix;
using numeric::ScoreModifiers;
using numeric::ScoreRegion;

// Which pairs of a tile of scores are seen.
class Pairs {
 public:
  Pairs(const Schedule& schedule, const ScoreRegion& region)
      : schedule_(schedule),
        region_(region),
        masked_(schedule.coverage(region.rows, region.keys) != Coverage::full) {}

  bool seen(Index r, Index c) const {
    return !masked_ || schedule_.visible(region_.rows.begin + r, region_.keys.begin + c);
  }

 private:
  const Schedule& schedule_;
  ScoreRegion region_;
  bool masked_;
};

// sum += p^T x, where p holds scores and x has a row for each of their queries.
template <class T>
void multiply_left_transposed(Matrix<T>& sum, const Matrix<T>& p, const Matrix<T>& x,
                              const Pairs& pairs, const ProductArithmetic<T>& arithmetic) {
  if (p.allFinite() && x.allFinite()) {
    return accumulate_products<T>(sum, p.transpose(), x, arithmetic);
  }
  // Hidden terms become zero times zero in their place, so that blocks of terms stay as they are.
  for (Index c = 0; c < p.cols(); ++c) {
    Matrix<T> weights = p.col(c).transpose();
    Matrix<T> rows = x;
    for (Index r = 0; r < p.rows(); ++r) {
      if (pairs.seen(r, c)) continue;
      weights(0, r) = 0;
      rows.row(r).setZero();
    }
    Matrix<T> row = sum.row(c);
    accumulate_products<T>(row, weights, rows, arithmetic);
    sum.row(c) = row;
  }
}

// result = row sums of a o b, product and sum rounded; with `pairs`, over those that are seen.
template <class T>
void row_dot(Matrix<T>& result, const Matrix<T>& a, const Matrix<T>& b, const Pairs* pairs,
             const Rounder<T>& round) {
  for (Index r = 0; r < a.rows(); ++r) {
    T sum = 0;
    for (Index c = 0; c < a.cols(); ++c) {
      if (pairs != nullptr && !pairs->seen(r, c)) continue;
      sum = round.add(sum, round.multiply(a(r, c), b(r, c)));
    }
    result(r, 0) = sum;
  }
}

// From dP to the gradient of the logits.
template <class T>
void softmax_gradient(Matrix<T>& dp, const Matrix<T>& p, const Matrix<T>& delta, const Pairs& pairs,
                      const Rounder<T>& round) {
  for (Index r = 0; r < dp.rows(); ++r) {
    for (Index c = 0; c < dp.cols(); ++c) {
      dp(r, c) = pairs.seen(r, c) ? round.multiply(p(r, c), round.add(dp(r, c), -delta(r, 0))) : 0;
    }
  }
}

// d logit / d (q k^T) of one pair whose product is `product`.
template <class T>
T logit_slope(T product, const ScoreModifiers<T>& modifiers, const Rounder<T>& round) {
  if (modifiers.softcap == 0) return modifiers.scale;
  const T ratio = round.divide(round.multiply(product, modifiers.scale), modifiers.softcap);
  const T capped = static_cast<T>(round.of_double(std::tanh(static_cast<double>(ratio))));
  const T slope = round.multiply(round.add(1, -capped), round.add(1, capped));
  return round.multiply(modifiers.scale, slope);
}

// From the gradient of the logits to that of q k^T. `products` is nullptr where the program has Q
// and K no longer; a softcap's slope depends on them.
template <class T>
void logits_gradient(Matrix<T>& ds, const Matrix<T>* products, const ScoreModifiers<T>& modifiers,
                     const Pairs& pairs, const Rounder<T>& round) {
  if (modifiers.softcap != 0 && products == nullptr) {
    throw ConfigError("softcap: needs a program that has Q and K where it takes their gradient");
  }
  for (Index r = 0; r < ds.rows(); ++r) {
    for (Index c = 0; c < ds.cols(); ++c) {
      if (!pairs.seen(r, c)) {
        ds(r, c) = 0;
        continue;
      }
      const T product = products == nullptr ? T{0} : (*products)(r, c);
      ds(r, c) = round.multiply(ds(r, c), logit_slope(product, modifiers, round));
    }
  }
}

}  // namespace flashbound::emulated
