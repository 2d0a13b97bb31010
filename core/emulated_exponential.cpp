#include "core/emulated_exponential.hpp"

#include "core/exponential.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace flashbound {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

}  // namespace

template <class T>
EmulatedExponential<T>::EmulatedExponential(const Recipe& recipe, const OperandRange& operands,
                                            RandomStream& stream)
    : exponential_(recipe.exponential),
      offset_(recipe.weight_offset_log2),
      operands_(operands),
      stream_(&stream),
      scores_(recipe.scores, recipe.rounding, operands, stream),
      statistics_(recipe.statistics, recipe.rounding, operands, stream),
      log2_e_(static_cast<T>(round_to(recipe.scores, std::numbers::log2e))) {}

// e^x or 2^x rounded once; where fp64 leaves the rounding in doubt, certified.
template <class T>
double EmulatedExponential<T>::power(const Rounder<T>& target, bool base_two, double x) const {
  const double y = base_two ? std::exp2(x) : std::exp(x);
  if (target.rounding() == Rounding::stochastic) return target.of_double(y);
  const ExponentialRange range = exponential_range(y);
  const double low = target.of_double(range.low);
  if (low == target.of_double(range.high) && std::isfinite(y)) return low;
  return base_two ? exp2_rounded(target.format(), target.rounding(), x)
                  : exp_rounded(target.format(), target.rounding(), x);
}

// 2^offset e^x rounded once: e^x rounded to the format with its range moved by 2^-offset.
template <class T>
double EmulatedExponential<T>::lifted_power(const Rounder<T>& target, double x) const {
  if (offset_ == 0) return power(target, false, x);
  FloatFormat moved = target.format();
  moved.exponent_min -= offset_;
  moved.largest = std::ldexp(moved.largest, -offset_);
  const Rounder<T> rounder(moved, target.rounding(), operands_, *stream_);
  return std::ldexp(power(rounder, false, x), offset_);
}

template <class T>
T EmulatedExponential<T>::factor(T before, T after) const {
  const T difference = statistics_.add(before, -after);
  double result = 0;
  switch (exponential_.kind) {
    case ExponentialKind::correctly_rounded:
      result = power(statistics_, false, static_cast<double>(difference));
      break;
    case ExponentialKind::hardware:
    case ExponentialKind::polynomial: {
      // Kernels approximate weights, of which there are many, and never factors.
      const T t = statistics_.multiply(difference, log2_e_);
      result = power(statistics_, true, static_cast<double>(t));
      if (result < smallest_normal(statistics_.format())) result = 0;
      break;
    }
  }
  return static_cast<T>(result);
}

template <class T>
T EmulatedExponential<T>::weight(const Rounder<T>& target, T score, T maximum,
                                 RangeEvents& events) const {
  double result = 0;
  double exact_sign = 1;  // nonzero before rounding
  if (exponential_.kind == ExponentialKind::correctly_rounded) {
    const T x = scores_.add(score, -maximum);
    exact_sign = x == -kInfinity<T> ? 0 : 1;
    result = lifted_power(target, static_cast<double>(x));
  } else {
    const auto offset = static_cast<T>(offset_);
    const T shift = scores_.multiply_add(maximum, log2_e_, -offset);
    const T t = scores_.multiply_add(score, log2_e_, -shift);
    exact_sign = t == -kInfinity<T> ? 0 : 1;
    if (exponential_.kind == ExponentialKind::hardware) {
      result = power(target, true, static_cast<double>(t));
    } else {
      const float y = exp2_polynomial(exponential_.degree, static_cast<float>(t));
      result = target.of_double(static_cast<double>(y));
    }
    if (result < smallest_normal(target.format())) result = 0;  // flushed; NaN stays
  }
  if (result == 0 && exact_sign != 0) ++events.underflows;
  if (std::isinf(result) && std::isfinite(score) && std::isfinite(maximum)) ++events.overflows;
  return static_cast<T>(result);
}

template class EmulatedExponential<float>;
template class EmulatedExponential<double>;

}  // namespace flashbound
