// Exact results by multiple-precision arithmetic (Arb), rounded once: an oracle that shares no code
// with emulated arithmetic.
#pragma once

#include "core/float_format.hpp"

#include <algorithm>
#include <arb.h>
#include <arf.h>
#include <cmath>
#include <limits>
#include <vector>

namespace flashbound::testing {

// An arf_t with the lifetime of a C++ value.
class Exact {
 public:
  Exact() { arf_init(number_); }
  explicit Exact(double x) : Exact() { arf_set_d(number_, x); }
  Exact(const Exact& other) : Exact() { arf_set(number_, other.number_); }
  Exact& operator=(const Exact& other) {
    arf_set(number_, other.number_);
    return *this;
  }
  ~Exact() { arf_clear(number_); }
  arf_ptr get() { return number_; }
  arf_srcptr get() const { return number_; }

 private:
  arf_t number_;
};

inline Exact operator+(const Exact& a, const Exact& b) {
  Exact sum;
  arf_add(sum.get(), a.get(), b.get(), ARF_PREC_EXACT, ARF_RND_DOWN);
  return sum;
}
inline Exact operator*(const Exact& a, const Exact& b) {
  Exact product;
  arf_mul(product.get(), a.get(), b.get(), ARF_PREC_EXACT, ARF_RND_DOWN);
  return product;
}
// Rounded to a format as the exact quotient is: 400 bits and far below a rest that says there are
// more.
inline Exact operator/(const Exact& a, const Exact& b) {
  Exact quotient;
  if (arf_div(quotient.get(), a.get(), b.get(), 400, ARF_RND_DOWN) == 0) return quotient;
  return quotient + quotient * Exact(0x1p-500);
}

// 2^exponent, which may be no double.
inline Exact exact_power_of_two(int exponent) {
  Exact power(1);
  while (exponent != 0) {
    const int step = std::clamp(exponent, -1000, 1000);
    power = power * Exact(std::ldexp(1.0, step));
    exponent -= step;
  }
  return power;
}

inline double overflow_of(const FloatFormat& format) {
  switch (format.overflow) {
    case Overflow::infinity: return std::numeric_limits<double>::infinity();
    case Overflow::saturate: return format.largest;
    case Overflow::nan: break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// A finite exact number, rounded to nearest even or toward zero by the definition of the format:
// multiples of its spacing there. Zero has no sign here.
inline double rounded_once(const FloatFormat& format, Rounding rounding, const Exact& exact) {
  if (arf_is_zero(exact.get())) return 0;
  const int sign = arf_sgn(exact.get());
  Exact size;
  arf_abs(size.get(), exact.get());
  const auto exponent = static_cast<int>(arf_abs_bound_lt_2exp_si(size.get())) - 1;
  const int last = std::max(exponent, format.exponent_min) - format.significand_bits + 1;
  size = size * exact_power_of_two(-last);  // in spacings
  Exact whole;
  arf_floor(whole.get(), size.get());
  double spacings = arf_get_d(whole.get(), ARF_RND_DOWN);
  const bool nearest = rounding == Rounding::nearest_even;
  const int beyond_half = arf_cmp(size.get(), (whole + Exact(0.5)).get());
  const bool odd = std::fmod(spacings, 2) != 0;
  if (nearest && (beyond_half > 0 || (beyond_half == 0 && odd))) ++spacings;
  const double result = std::ldexp(spacings, last);
  if (result > format.largest) return sign * (nearest ? overflow_of(format) : format.largest);
  if (!format.subnormals && result < std::ldexp(1.0, format.exponent_min)) return 0;
  return sign * result;
}

// e^x and 2^x to 300 bits, or 1300 where x is so small that these would be 1. They round to a
// format as the exact values do.
inline Exact exact_exponential(double x, bool base_two) {
  const slong precision = std::abs(x) < 0x1p-100 ? 1300 : 300;
  if (base_two && x == std::floor(x)) return exact_power_of_two(static_cast<int>(x));
  arb_t value;
  arb_t log2;
  arb_init(value);
  arb_init(log2);
  arb_set_d(value, x);
  arb_const_log2(log2, precision + 20);
  if (base_two) arb_mul(value, value, log2, precision + 20);
  arb_exp(value, value, precision);
  Exact result;
  arf_set(result.get(), arb_midref(value));
  arb_clear(value);
  arb_clear(log2);
  return result;
}
inline Exact exact_exp(double x) { return exact_exponential(x, false); }
inline Exact exact_exp2(double x) { return exact_exponential(x, true); }

// x in units of 2^lowest, without its fraction.
inline Exact cut(double x, int lowest) {
  const Exact scaled = Exact(x) * exact_power_of_two(-lowest);
  Exact whole;
  if (arf_sgn(scaled.get()) < 0) {
    arf_ceil(whole.get(), scaled.get());
  } else {
    arf_floor(whole.get(), scaled.get());
  }
  return whole;
}

// A tensor core's sum by its definition: terms cut below `bits` bits of the largest, added exactly,
// rounded toward zero. Finite terms only.
inline double aligned_once(double accumulated, const std::vector<double>& terms, int bits,
                           const FloatFormat& format) {
  double largest = std::abs(accumulated);
  for (const double term : terms) largest = std::max(largest, std::abs(term));
  if (largest == 0) return 0;
  const int lowest = std::ilogb(largest) - bits + 1;
  Exact sum = cut(accumulated, lowest);
  for (const double term : terms) sum = sum + cut(term, lowest);
  return rounded_once(format, Rounding::toward_zero, sum * exact_power_of_two(lowest));
}

}  // namespace flashbound::testing
