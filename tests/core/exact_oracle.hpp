// Rounding of exact results by multiple-precision arithmetic (Arb's arf), once.
#pragma once

#include "core/float_format.hpp"

#include <algorithm>
#include <arf.h>
#include <cmath>
#include <limits>

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

}  // namespace flashbound::testing
