// The tile operations of the numeric machine: plain functions on matrices of one arithmetic.
#pragma once

#include "core/numeric_events.hpp"
#include "core/schedule.hpp"

#include <Eigen/Core>

#include <cmath>
#include <limits>

namespace flashbound::numeric {

template <class Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// What turns q k^T into logits, in the arithmetic of the run.
template <class Scalar>
struct ScoreModifiers {
  Scalar scale = 1;
  Scalar softcap = 0;      // 0 = none
  Scalar alibi_slope = 0;  // 0 = none
};

// Where a tile of scores lies.
struct ScoreRegion {
  Interval rows;  // queries
  Interval keys;
};

// NaN wins, as it does in the result of a softmax.
template <class Scalar>
Scalar max_or_nan(Scalar a, Scalar b) {
  return std::isnan(a) || a > b ? a : b;
}

template <class Scalar>
void logits(Matrix<Scalar>& s, const ScoreModifiers<Scalar>& modifiers, const Schedule& schedule,
            const ScoreRegion& region) {
  const Index offset = schedule.shape.seqlen_kv - schedule.shape.seqlen_q;
  const bool masked = schedule.coverage(region.rows, region.keys) != Coverage::full;
  for (Index r = 0; r < region.rows.size(); ++r) {
    const Index query = region.rows.begin + r;
    for (Index c = 0; c < region.keys.size(); ++c) {
      const Index key = region.keys.begin + c;
      Scalar& logit = s(r, c);
      if (masked && !schedule.visible(query, key)) {
        logit = -std::numeric_limits<Scalar>::infinity();
        continue;
      }
      logit *= modifiers.scale;
      if (modifiers.softcap != 0) {
        logit = modifiers.softcap * std::tanh(logit / modifiers.softcap);
      }
      if (modifiers.alibi_slope != 0) {
        const auto distance = static_cast<Scalar>(std::abs(query + offset - key));
        logit -= modifiers.alibi_slope * distance;
      }
    }
  }
}

// m = max(m, row maxima of s); factor, if wanted, = exp(m_old - m).
template <class Scalar>
void row_max_update(Matrix<Scalar>& row_max, const Matrix<Scalar>& s, Matrix<Scalar>* factor,
                    RescaleCount& rescales) {
  for (Index r = 0; r < s.rows(); ++r) {
    const Scalar before = row_max(r, 0);
    Scalar after = before;
    for (Index c = 0; c < s.cols(); ++c) after = max_or_nan(s(r, c), after);
    row_max(r, 0) = after;
    const bool same = after == before;  // also -inf, whose difference with itself is NaN
    if (before != -std::numeric_limits<Scalar>::infinity()) {
      ++(same ? rescales.skipped : rescales.done);
    }
    if (factor != nullptr) (*factor)(r, 0) = same ? Scalar{1} : std::exp(before - after);
  }
}

// -inf is a masked pair (or a key of weight zero) and becomes 0 even where the maximum is -inf.
template <class Scalar>
void exponentiate(Matrix<Scalar>& s, const Matrix<Scalar>& row_max) {
  for (Index r = 0; r < s.rows(); ++r) {
    for (Index c = 0; c < s.cols(); ++c) {
      const bool none = s(r, c) == -std::numeric_limits<Scalar>::infinity();
      s(r, c) = none ? Scalar{0} : std::exp(s(r, c) - row_max(r, 0));
    }
  }
}

template <class Scalar>
void rescale(Matrix<Scalar>& tile, const Matrix<Scalar>& factor) {
  for (Index r = 0; r < tile.rows(); ++r) {
    if (factor(r, 0) != Scalar{1}) tile.row(r) *= factor(r, 0);
  }
}

template <class Scalar>
void divide(Matrix<Scalar>& tile, const Matrix<Scalar>& row_sum) {
  for (Index r = 0; r < tile.rows(); ++r) {
    if (row_sum(r, 0) == Scalar{0}) {
      tile.row(r).setZero();  // no key seen
    } else {
      tile.row(r) /= row_sum(r, 0);
    }
  }
}

template <class Scalar>
void lse(Matrix<Scalar>& result, const Matrix<Scalar>& row_max, const Matrix<Scalar>& row_sum) {
  for (Index r = 0; r < result.rows(); ++r) {
    result(r, 0) = row_max(r, 0) + std::log(row_sum(r, 0));
  }
}

// o += p v where v may hold NaN or infinity: a masked pair adds nothing, not even 0 x NaN.
template <class Scalar>
void multiply_visible(Matrix<Scalar>& o, const Matrix<Scalar>& p, const Matrix<Scalar>& v,
                      const Schedule& schedule, const ScoreRegion& region) {
  for (Index r = 0; r < p.rows(); ++r) {
    for (Index c = 0; c < p.cols(); ++c) {
      if (schedule.visible(region.rows.begin + r, region.keys.begin + c)) {
        o.row(r) += p(r, c) * v.row(c);
      }
    }
  }
}

}  // namespace flashbound::numeric
