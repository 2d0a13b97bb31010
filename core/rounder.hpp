// Rounds numbers of a run to the formats of its recipe, and counts what leaves their range.
#pragma once

#include "core/inexact.hpp"
#include "core/lane_rounding.hpp"
#include "core/numeric_events.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace flashbound {

// The stream of random words of stochastic rounding: one a rounding, in the order of the run.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint64_t position = 0;
  std::uint64_t next() { return random_bits(seed, position++); }
};

// What the operands of a run's operations may be: multiples of 2^lowest of `bits` significant bits.
struct OperandRange {
  int bits = 0;
  int lowest = 0;
};

// Numbers of one format.
inline OperandRange operands_of(const FloatFormat& format) {
  return {format.significand_bits, format.exponent_min - format.significand_bits + 1};
}

// Rounding to one format in the carrier T. A small value; the stream belongs to the run.
template <class T>
class Rounder {
 public:
  // Operands of add, multiply and divide are those of `operands`.
  Rounder(const FloatFormat& format, Rounding rounding, const OperandRange& operands,
          RandomStream& stream)
      : format_(format), rounding_(rounding), stream_(&stream) {
    if (rounding != Rounding::nearest_even) return;
    lanes_ = lane_rounding<T>(format);
    wide_lanes_ = lane_rounding<double>(format);
    if (!lanes_) return;
    choose_direct(operands);
    tells_above_ = static_cast<T>(smallest_normal(format));
    tells_below_ = static_cast<T>(format.largest);
  }

  const FloatFormat& format() const { return format_; }
  Rounding rounding() const { return rounding_; }
  // Present where integer operations on the carrier round one number to the format.
  const std::optional<LaneRounding<T>>& lanes() const { return lanes_; }
  // Whether the carrier's operation, rounded, is the format's.
  bool adds_directly() const { return direct_add_; }
  bool multiplies_directly() const { return direct_multiply_; }
  bool divides_directly() const { return direct_divide_; }
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
  T add(T a, T b) const {
    const T sum = a + b;
    return direct_add_ || tells(sum) ? round_lane(*lanes_, sum) : once(inexact_sum(a, b));
  }
  T multiply(T a, T b) const {
    const T product = a * b;
    return direct_multiply_ || tells(product) ? round_lane(*lanes_, product)
                                              : once(inexact_product(a, b));
  }
  T divide(T a, T b) const {
    const T quotient = a / b;
    return direct_divide_ || tells(quotient) ? round_lane(*lanes_, quotient)
                                             : once(inexact_quotient(a, b));
  }
  // a b + c, rounded once.
  T multiply_add(T a, T b, T c) const {
    const T fused = std::fma(a, b, c);
    if (native()) return fused;
    return tells(fused) ? round_lane(*lanes_, fused) : once(inexact_fused(a, b, c));
  }
  // The exact result, rounded once.
  T once(const Inexact<T>& exact) const {
    if (exact.rest == 0 || std::isnan(exact.value)) return (*this)(exact.value);
    switch (rounding_) {
      case Rounding::nearest_even: break;
      case Rounding::toward_zero: return (*this)(truncated(exact));
      case Rounding::stochastic: return drawn(exact);
    }
    return (*this)(telling(exact));
  }

 private:
  static constexpr int kDigits = std::numeric_limits<T>::digits;
  static constexpr int kExponentMin = std::numeric_limits<T>::min_exponent - 1;

  // Where two roundings give what one gives. p is the format's precision, q that of operands.
  void choose_direct(const OperandRange& operands) {
    const int p = format_.significand_bits;
    const int q = operands.bits;
    const int emin = format_.exponent_min;
    constexpr int kLowest = kExponentMin - kDigits + 1;  // the carrier's smallest number
    const bool own = native();
    // The sum of two numbers of the format (Figueroa 1995). Of a wider operand, or one between the
    // format's subnormals, the other could be too small a rest to tell it from a tie.
    direct_add_ = own || (q <= p && operands.lowest >= emin - p + 1);
    // Exact; but for products below 2^(kLowest - 1 + 2q), which then have to round to zero.
    direct_multiply_ = own || (2 * q <= kDigits && kLowest - 1 + 2 * q <= emin - p);
    // A quotient of q bits is no nearer to a tie of p bits than 2^-(p + q), relatively.
    direct_divide_ = own || p + q + 2 <= kDigits;
  }

  // Whether x, a result rounded to the carrier, rounds to nearest as the exact one does: it lies in
  // the normal range and on no tie, so that both are on the same side of every tie.
  bool tells(T x) const {
    if (!lanes_ || lanes_->kind == LaneKind::none) return false;
    using Bits = typename LaneRounding<T>::Bits;
    const Bits cut = std::bit_cast<Bits>(x) & ((Bits{1} << lanes_->shift) - 1);
    const T size = std::abs(x);
    return cut != Bits{1} << (lanes_->shift - 1) && size > tells_above_ && size < tells_below_;
  }

  // A number that rounds to nearest as the exact value does. Where the format lacks two bits of the
  // carrier or more, that is rounding to odd (Boldo and Melquiond 2008): x, or its odd neighbour on
  // the side of the rest. Where it lacks one, odd numbers are ties, which the rest decides.
  T telling(const Inexact<T>& exact) const {
    using Bits = typename LaneRounding<T>::Bits;
    const T x = exact.value;
    const int lacks = bits_lacking(x);
    if (lacks == 0) return x;
    const bool odd = (std::bit_cast<Bits>(x) & 1) != 0;
    return odd == (lacks > 1) ? x : std::nextafter(x, exact.rest > 0 ? kInfinity : -kInfinity);
  }
  int bits_lacking(T x) const {
    const int lacks = kDigits - format_.significand_bits;
    if (lacks > 1 || !std::isfinite(x)) return lacks;
    const int exponent = x == 0 ? kExponentMin : std::max(std::ilogb(x), kExponentMin);
    return lacks + std::max(format_.exponent_min - exponent, 0);
  }

  static T truncated(const Inexact<T>& exact) {
    const bool beyond = std::signbit(exact.value) != std::signbit(exact.rest);
    return beyond && exact.value != 0 ? std::nextafter(exact.value, T{0}) : exact.value;
  }

  // To the carrier at random first, which changes no mean. Both draws share one random word.
  T drawn(const Inexact<T>& exact) const {
    if (std::isinf(exact.value)) return (*this)(exact.value);
    const std::uint64_t random = stream_->next();
    const T low = truncated(exact);
    const T high = std::nextafter(low, std::copysign(kInfinity, exact.value));
    const T distance = std::abs((exact.value - low) + exact.rest) / std::abs(high - low);
    const double chance = std::ldexp(static_cast<double>(distance), 32);
    const bool up = static_cast<double>(random & 0xFFFFFFFF) < std::floor(chance);
    const auto x = static_cast<double>(up ? high : low);
    return static_cast<T>(round_to(format_, rounding_, x, random));
  }

  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  FloatFormat format_;
  Rounding rounding_;
  RandomStream* stream_;
  std::optional<LaneRounding<T>> lanes_;
  std::optional<LaneRounding<double>> wide_lanes_;
  bool direct_add_ = false;
  bool direct_multiply_ = false;
  bool direct_divide_ = false;
  T tells_above_ = 0;
  T tells_below_ = 0;
};

}  // namespace flashbound
