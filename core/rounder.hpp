// Rounds numbers of a run to the formats of its recipe, and counts what leaves their range.
#pragma once

#include "core/lane_rounding.hpp"
#include "core/numeric_events.hpp"

#include <bit>
#include <cmath>

namespace flashbound {

// The stream of random words of stochastic rounding: one a rounding, in the order of the run.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint64_t position = 0;
  std::uint64_t next() { return random_bits(seed, position++); }
};

// Rounding to one format in the carrier T. A small value; the stream belongs to the run.
template <class T>
class Rounder {
 public:
  // `widest`: significand bits of the widest operand of add, multiply and divide.
  Rounder(const FloatFormat& format, Rounding rounding, int widest, RandomStream& stream)
      : format_(format), rounding_(rounding), stream_(&stream) {
    if (rounding != Rounding::nearest_even) return;
    lanes_ = lane_rounding<T>(format);
    wide_lanes_ = lane_rounding<double>(format);
    if (lanes_) {
      direct_ = lanes_->kind == LaneKind::none || 2 * widest + 2 <= std::numeric_limits<T>::digits;
    }
  }

  const FloatFormat& format() const { return format_; }
  Rounding rounding() const { return rounding_; }
  // Present where integer operations on the carrier round one number to the format.
  const std::optional<LaneRounding<T>>& lanes() const { return lanes_; }
  // Whether an operation of the carrier, rounded, is the format's operation.
  bool direct() const { return direct_; }
  bool native() const { return lanes_ && lanes_->kind == LaneKind::none; }

  T operator()(T x) const {
    if (lanes_) return round_lane(*lanes_, x);
    return static_cast<T>(of_double(static_cast<double>(x)));
  }
  double of_double(double x) const {
    if (wide_lanes_) return round_lane(*wide_lanes_, x);
    const std::uint64_t random = rounding_ == Rounding::stochastic ? stream_->next() : 0;
    return round_to(format_, rounding_, x, random);
  }
  T operator()(T x, RangeEvents& events) const {
    const T result = (*this)(x);
    observe(static_cast<double>(x), static_cast<double>(result), events);
    return result;
  }
  void observe(double before, double after, RangeEvents& events) const {
    if (after == 0) {
      events.underflows += before != 0 ? 1 : 0;
    } else if (std::isfinite(before) && std::abs(before) > format_.largest && before != after) {
      // Rounding down to the largest number is no overflow, unless it saturates.
      const bool rounded = std::abs(before) < format_.largest + ulp(format_, format_.largest) / 2;
      events.overflows += rounded && std::isfinite(after) ? 0 : 1;
    }
  }

  // The sum, product and quotient, rounded once.
  T add(T a, T b) const { return direct_ ? round_lane(*lanes_, a + b) : (*this)(odd_sum(a, b)); }
  T multiply(T a, T b) const {
    return direct_ ? round_lane(*lanes_, a * b) : (*this)(odd_sum_of_product(a, b, T{0}));
  }
  T divide(T a, T b) const {
    const T quotient = a / b;
    if (direct_) return round_lane(*lanes_, quotient);
    const T rest = std::fma(-quotient, b, a);
    return (*this)(to_odd(quotient, std::signbit(b) ? -rest : rest));
  }
  // a b + c, rounded once.
  T multiply_add(T a, T b, T c) const {
    return native() ? std::fma(a, b, c) : (*this)(odd_sum_of_product(a, b, c));
  }

 private:
  // x, or where `rest` (of the exact value x + rest) is not zero the odd neighbour on its side:
  // rounding that again to two bits fewer rounds the exact value (Boldo and Melquiond 2008).
  static T to_odd(T x, T rest) {
    using Bits = typename LaneRounding<T>::Bits;
    if (rest == 0 || !std::isfinite(rest) || !std::isfinite(x)) return x;
    const bool odd = (std::bit_cast<Bits>(x) & 1) != 0;
    return odd ? x
               : std::nextafter(x, rest > 0 ? std::numeric_limits<T>::infinity()
                                            : -std::numeric_limits<T>::infinity());
  }
  static T odd_sum(T a, T b) {
    const T sum = a + b;
    return to_odd(sum, sum_error(a, b, sum));
  }
  static T odd_sum_of_product(T a, T b, T c) {
    const T product = a * b;
    const T product_error = std::fma(a, b, -product);
    const T sum = product + c;
    const T addition_error = sum_error(product, c, sum);
    const T rest = addition_error + product_error;
    const T lost = sum_error(addition_error, product_error, rest);
    // The two errors together may reach beyond half a last place of the sum.
    const T moved = sum + rest;
    const T moved_error = sum_error(sum, rest, moved);
    return to_odd(moved, moved_error != 0 ? moved_error : lost);
  }
  // a + b - sum exactly, by Knuth's two-sum.
  static T sum_error(T a, T b, T sum) {
    const T b_part = sum - a;
    return (a - (sum - b_part)) + (b - b_part);
  }

  FloatFormat format_;
  Rounding rounding_;
  RandomStream* stream_;
  std::optional<LaneRounding<T>> lanes_;
  std::optional<LaneRounding<double>> wide_lanes_;
  bool direct_ = false;
};

}  // namespace flashbound
