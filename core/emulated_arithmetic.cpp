#include "core/emulated_arithmetic.hpp"

#include "core/carriers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <vector>

namespace flashbound {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

}  // namespace

template <class T>
EmulatedArithmetic<T>::EmulatedArithmetic(const Recipe& recipe, std::uint64_t seed)
    : recipe_(recipe),
      operands_(operand_range(recipe)),
      stream_{seed},
      inputs_(rounder(recipe.inputs)),
      scores_(rounder(recipe.scores)),
      statistics_(rounder(recipe.statistics)),
      probabilities_(rounder(recipe.probabilities)),
      accumulator_(rounder(recipe.accumulator)),
      stored_(rounder(recipe.stored)),
      scores_product_(product(recipe.scores_product)),
      values_product_(product(recipe.values_product)),
      exponential_(recipe, operands_, stream_),
      shift_factor_(static_cast<T>(round_to(recipe.scores, recipe.shift_factor))),
      threshold_(static_cast<T>(
          round_to(recipe.statistics, recipe.rescale.threshold_log2 * std::numbers::ln2))),
      sink_sum_(
          static_cast<T>(round_to(recipe.statistics, std::ldexp(1.0, recipe.weight_offset_log2)))) {
}

template <class T>
Rounder<T> EmulatedArithmetic<T>::rounder(const FloatFormat& format) {
  return Rounder<T>(format, recipe_.rounding, operands_, stream_);
}

template <class T>
ProductArithmetic<T> EmulatedArithmetic<T>::product(const Accumulation& how) {
  ProductArithmetic<T> result{how, std::nullopt, rounder(how.sum)};
  if (how.product) result.product = rounder(*how.product);
  return result;
}

template <class T>
const Rounder<T>& EmulatedArithmetic<T>::rounder(TileRole role) const {
  switch (role) {
    case TileRole::operand: return inputs_;
    case TileRole::score: return scores_;
    case TileRole::statistic: return statistics_;
    case TileRole::accumulator: return accumulator_;
  }
  return inputs_;
}

template <class T>
numeric::Matrix<T> EmulatedArithmetic<T>::inputs(const numeric::Matrix<double>& values) {
  const bool scaled = recipe_.quantization.scaling != Scaling::none;
  return values.unaryExpr([&](double x) {
    // Rounding on lanes would take the payload of some NaN for digits.
    if (std::isnan(x)) return std::numeric_limits<T>::quiet_NaN();
    return static_cast<T>(scaled ? x : inputs_.of_double(x));
  });
}

template <class T>
double EmulatedArithmetic<T>::log_weight_offset() const {
  return recipe_.weight_offset_log2 * std::numbers::ln2;
}

template <class T>
numeric::Matrix<T> EmulatedArithmetic<T>::as_operand(Tile tile) {
  if (tile.role != TileRole::score || probabilities_.native()) return tile.values;
  return tile.values.unaryExpr([&](T x) { return probabilities_(x, events_); });
}

// To the format of their role, where partial sums have another.
template <class T>
void EmulatedArithmetic<T>::round_sums(Tile sum, const FloatFormat& sums) {
  const Rounder<T>& round = rounder(sum.role);
  if (round.native() || round.format() == sums) return;
  for (T& x : sum.values.reshaped()) x = round(x, events_);
}

template <class T>
void EmulatedArithmetic<T>::multiply_transposed(Tile sum, Tile a, Tile b) {
  const Matrix columns = as_operand(b).transpose();
  accumulate_products(sum.values, as_operand(a), columns, scores_product_);
  round_sums(sum, recipe_.scores_product.sum);
}

template <class T>
void EmulatedArithmetic<T>::multiply(Tile sum, Tile a, Tile b) {
  accumulate_products(sum.values, as_operand(a), as_operand(b), values_product_);
  round_sums(sum, recipe_.values_product.sum);
}

template <class T>
void EmulatedArithmetic<T>::multiply_visible(Tile sum, Tile a, Tile b, const Schedule& schedule,
                                             const numeric::ScoreRegion& region) {
  const Matrix weights = as_operand(a);
  const Matrix values = as_operand(b);
  Matrix visible = values;
  for (Index r = 0; r < weights.rows(); ++r) {
    // In their place, so that blocks and trees of terms stay as they are: zero times zero.
    for (Index k = 0; k < weights.cols(); ++k) {
      const bool seen = schedule.visible(region.rows.begin + r, region.keys.begin + k);
      if (seen) {
        visible.row(k) = values.row(k);
      } else {
        visible.row(k).setZero();
      }
    }
    Matrix row = sum.values.row(r);
    accumulate_products<T>(row, weights.row(r), visible, values_product_);
    sum.values.row(r) = row;
  }
  round_sums(sum, recipe_.values_product.sum);
}

template <class T>
T EmulatedArithmetic<T>::pairwise_sum(const Matrix& weights, Index row, Index first, Index last) {
  if (last == first) return 0;
  if (last - first == 1) return statistics_(weights(row, first));
  const Index middle = first + (last - first) / 2;
  return statistics_.add(pairwise_sum(weights, row, first, middle),
                         pairwise_sum(weights, row, middle, last));
}

template <class T>
void EmulatedArithmetic<T>::row_sum_update(Matrix& row_sum, const Matrix& weights) {
  for (Index r = 0; r < weights.rows(); ++r) {
    T& sum = row_sum(r, 0);
    if (recipe_.row_sum == SumOrder::pairwise) {
      sum = statistics_.add(sum, pairwise_sum(weights, r, 0, weights.cols()));
      continue;
    }
    for (Index c = 0; c < weights.cols(); ++c) sum = statistics_.add(sum, weights(r, c));
  }
}

template <class T>
T EmulatedArithmetic<T>::logit(T product, const numeric::ScoreModifiers<T>& modifiers,
                               Index distance) {
  T x = scores_.multiply(product, modifiers.scale);
  if (modifiers.softcap != 0) {
    const auto ratio = static_cast<double>(scores_.divide(x, modifiers.softcap));
    x = scores_.multiply(modifiers.softcap, static_cast<T>(scores_.of_double(std::tanh(ratio))));
  }
  if (modifiers.alibi_slope != 0) {
    const auto steps = static_cast<T>(scores_.of_double(static_cast<double>(distance)));
    x = scores_.add(x, -scores_.multiply(modifiers.alibi_slope, steps));
  }
  if (!std::isfinite(x) && std::isfinite(product)) ++events_.overflows;
  return x;
}

template <class T>
void EmulatedArithmetic<T>::logits(Matrix& s, const numeric::ScoreModifiers<T>& modifiers,
                                   const Schedule& schedule, const numeric::ScoreRegion& region) {
  const Index offset = schedule.shape.seqlen_kv - schedule.shape.seqlen_q;
  const bool masked = schedule.coverage(region.rows, region.keys) != Coverage::full;
  for (Index r = 0; r < s.rows(); ++r) {
    const Index query = region.rows.begin + r;
    for (Index c = 0; c < s.cols(); ++c) {
      const Index key = region.keys.begin + c;
      const bool hidden = masked && !schedule.visible(query, key);
      s(r, c) = hidden ? -kInfinity<T> : logit(s(r, c), modifiers, std::abs(query + offset - key));
    }
  }
}

template <class T>
T EmulatedArithmetic<T>::maximum(const Matrix& scores, Index row) const {
  T largest = -kInfinity<T>;
  for (Index c = 0; c < scores.cols(); ++c) {
    largest = numeric::max_or_nan(scores(row, c), largest);
  }
  if (recipe_.shift == Shift::avoid_one && std::isfinite(largest)) {
    const Index ties = (scores.row(row).array() == largest).count();
    if (ties > 1 && largest > 0) {
      return scores_.multiply(largest, shift_factor_);
    }
    if (ties > 1 && largest < 0) return 0;
  }
  return largest;
}

template <class T>
void EmulatedArithmetic<T>::row_max_update(Matrix& row_max, const Matrix& scores, Matrix* factors) {
  for (Index r = 0; r < scores.rows(); ++r) {
    const T before = row_max(r, 0);
    const bool seen = before != -kInfinity<T>;
    const T of_block = maximum(scores, r);
    // No visible pair: no number, also where the format has no infinity.
    const bool none = of_block == -kInfinity<T>;
    T after = none ? before : numeric::max_or_nan(statistics_(of_block, events_), before);
    if (seen && threshold_ > 0 && statistics_.add(after, -before) <= threshold_) after = before;
    const bool same = after == before;  // also -inf, whose difference with itself is NaN
    if (seen) {
      const bool done = !same || recipe_.rescale.rule == RescaleRule::always;
      ++(done ? rescales_.done : rescales_.skipped);
    }
    row_max(r, 0) = after;
    if (factors != nullptr) (*factors)(r, 0) = same ? T{1} : exponential_.factor(before, after);
  }
}

template <class T>
void EmulatedArithmetic<T>::exponentiate(Tile scores, const Matrix& row_max) {
  // Merging parts: these exponentials are few, like the factors of rescales.
  const bool merges = scores.role == TileRole::statistic;
  const Rounder<T>& target = recipe_.sum_of_rounded ? probabilities_ : scores_;
  Matrix& s = scores.values;
  for (Index r = 0; r < s.rows(); ++r) {
    for (Index c = 0; c < s.cols(); ++c) {
      if (s(r, c) == -kInfinity<T>) {
        s(r, c) = 0;
      } else {
        s(r, c) = merges ? exponential_.factor(s(r, c), row_max(r, 0))
                         : exponential_.weight(target, s(r, c), row_max(r, 0), events_);
      }
    }
  }
}

template <class T>
void EmulatedArithmetic<T>::rescale(Tile tile, const Matrix& factor) {
  const Rounder<T>& round = rounder(tile.role);
  for (Index r = 0; r < tile.values.rows(); ++r) {
    if (factor(r, 0) == T{1}) continue;  // changes no bit
    for (Index c = 0; c < tile.values.cols(); ++c) {
      T& x = tile.values(r, c);
      x = round.multiply(x, factor(r, 0));
    }
  }
}

template <class T>
void EmulatedArithmetic<T>::scale_add(Tile sum, const Matrix& factor, const Matrix& tile) {
  const Rounder<T>& round = rounder(sum.role);
  for (Index r = 0; r < tile.rows(); ++r) {
    for (Index c = 0; c < tile.cols(); ++c) {
      T& x = sum.values(r, c);
      x = round.add(x, round.multiply(factor(r, 0), tile(r, c)));
    }
  }
}

template <class T>
void EmulatedArithmetic<T>::divide(Tile tile, const Matrix& row_sum) {
  const Rounder<T>& round = rounder(tile.role);
  for (Index r = 0; r < tile.values.rows(); ++r) {
    for (Index c = 0; c < tile.values.cols(); ++c) {
      T& x = tile.values(r, c);
      x = row_sum(r, 0) == 0 ? T{0} : round.divide(x, row_sum(r, 0));  // 0: no key seen
    }
  }
}

template <class T>
void EmulatedArithmetic<T>::lse(Matrix& result, const Matrix& row_max, const Matrix& row_sum,
                                SumOf sum_of) {
  const double offset = sum_of == SumOf::weights ? log_weight_offset() : 0;
  for (Index r = 0; r < result.rows(); ++r) {
    const auto sum = static_cast<double>(row_sum(r, 0));
    if (sum == 0) {  // nothing seen
      result(r, 0) = -kInfinity<T>;
      continue;
    }
    const double log_sum = statistics_.of_double(std::log(sum) - offset);
    result(r, 0) = statistics_.add(row_max(r, 0), static_cast<T>(log_sum));
  }
}

template <class T>
numeric::Matrix<T> EmulatedArithmetic<T>::stored(const Matrix& tile, Width width) {
  const Rounder<T>& round = width == Width::data        ? stored_
                            : width == Width::statistic ? statistics_
                                                        : accumulator_;
  if (round.native()) return tile;
  // -inf is a pair that the mask hides, or a row that sees nothing: no number, and kept as what it
  // is where the format has no infinity.
  return tile.unaryExpr([&](T x) { return x == -kInfinity<T> ? x : round(x, events_); });
}

template class EmulatedArithmetic<float>;
template class EmulatedArithmetic<double>;

}  // namespace flashbound
