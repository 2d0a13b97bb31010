// Rounding to a format by a few integer operations, on one number or on SIMD lanes.
//
// The carrier T (float or double) holds the format's numbers exactly. Where it has at least 2p + 2
// bits, that is p <= 11 in float and p <= 25 in double, an operation on numbers of the format done
// in the carrier and then rounded mostly gives the bits of the operation done in the format
// (Figueroa 1995); core/rounder.hpp knows the exceptions: sums of wider operands, and products that
// are subnormal in the carrier. p = 24 in float and p = 53 in double are the carrier itself.
#pragma once

#include "core/float_format.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace flashbound {

enum class LaneKind {
  none,    // the carrier's own format
  bits,    // fewer significand bits, the carrier's exponents
  narrow,  // fewer exponents too
};

template <class T>
struct LaneRounding {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  LaneKind kind = LaneKind::none;
  int shift = 0;  // significand bits that the format lacks
  // narrow:
  T smallest_normal = 0;
  T magic = 0;  // |x| + magic - magic rounds |x| < smallest_normal to the subnormals
  T largest = 0;
  T beyond = 0;  // what a magnitude above `largest` becomes
};

// nullopt where the carrier cannot round to the format by these operations: more bits than the
// carrier can round innocuously, or a format without subnormals.
template <class T>
std::optional<LaneRounding<T>> lane_rounding(const FloatFormat& format) {
  using Limits = std::numeric_limits<T>;
  const FloatFormat own = float_format(sizeof(T) == 4 ? NumberFormat::fp32 : NumberFormat::fp64);
  LaneRounding<T> result;
  if (format == own) return result;
  result.shift = Limits::digits - format.significand_bits;
  if (2 * format.significand_bits + 2 > Limits::digits || !format.subnormals) return std::nullopt;
  if (format.exponent_min < own.exponent_min) return std::nullopt;
  const T truncated_largest =
      std::ldexp(2 - std::ldexp(T{2}, -format.significand_bits), Limits::max_exponent - 1);
  const bool own_exponents = format.exponent_min == own.exponent_min &&
                             format.largest == static_cast<double>(truncated_largest);
  if (own_exponents && format.overflow == Overflow::infinity) {
    result.kind = LaneKind::bits;
    return result;
  }
  result.kind = LaneKind::narrow;
  result.smallest_normal = static_cast<T>(smallest_normal(format));
  result.magic = static_cast<T>(1.5 * std::ldexp(1.0, Limits::digits - 1 + format.exponent_min -
                                                          format.significand_bits + 1));
  result.largest = static_cast<T>(format.largest);
  switch (format.overflow) {
    case Overflow::infinity: result.beyond = Limits::infinity(); break;
    case Overflow::saturate: result.beyond = result.largest; break;
    case Overflow::nan: result.beyond = Limits::quiet_NaN(); break;
  }
  return result;
}

// To nearest, ties to even. NaN must be the quiet NaN that operations give: a carry into a payload
// of ones would end in the sign, and a payload of low bits alone would be cut to infinity.
template <class T>
T round_lane(const LaneRounding<T>& rounding, T x) {
  using Bits = typename LaneRounding<T>::Bits;
  if (rounding.kind == LaneKind::none) return x;
  const Bits bits = std::bit_cast<Bits>(x);
  const Bits half_below = (Bits{1} << (rounding.shift - 1)) - 1;
  const Bits odd = (bits >> rounding.shift) & 1;
  const Bits mask = ~((Bits{1} << rounding.shift) - 1);
  T result = std::bit_cast<T>((bits + half_below + odd) & mask);
  if (rounding.kind == LaneKind::bits) return result;
  if (std::abs(x) < rounding.smallest_normal) {
    result = std::copysign(std::abs(x) + rounding.magic - rounding.magic, x);
  }
  return std::abs(result) > rounding.largest ? std::copysign(rounding.beyond, x) : result;
}

}  // namespace flashbound
