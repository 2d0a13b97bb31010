#include "core/exponential.hpp"

#include "core/errors.hpp"

#include <arb.h>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace flashbound {
namespace {

// The library's exp and exp2 err by less than this, relatively (1 ulp by the GNU C library manual,
// doubled).
constexpr double kLibraryError = 0x1p-51;
constexpr int kPrecisionCap = 4096;

enum class Base { e, two };

// One certified rounding by ball arithmetic.
double certified(const FloatFormat& format, Rounding rounding, Base base, double x) {
  arb_t value;
  arf_t low;
  arf_t high;
  arb_init(value);
  arf_init(low);
  arf_init(high);
  double result = std::numeric_limits<double>::quiet_NaN();
  for (slong precision = 128; precision <= kPrecisionCap; precision *= 2) {
    arb_set_d(value, x);
    if (base == Base::two) {
      arb_t log2;
      arb_init(log2);
      arb_const_log2(log2, precision);
      arb_mul(value, value, log2, precision);
      arb_clear(log2);
    }
    arb_exp(value, value, precision);
    arb_get_lbound_arf(low, value, precision);
    arb_get_ubound_arf(high, value, precision);
    const double a = arf_get_d(low, ARF_RND_DOWN);
    const double b = arf_get_d(high, ARF_RND_DOWN);
    if (a != b) continue;
    if (format.significand_bits <= 51) {
      // The value lies between a and its neighbour above (exp is never a double, nor exp2 here).
      // Of the two the odd one rounds as all between them do: no midpoint of the format is odd.
      const double above = std::nextafter(a, std::numeric_limits<double>::infinity());
      const bool odd = (std::bit_cast<std::uint64_t>(a) & 1) != 0;
      result = round_to(format, rounding, odd ? a : above);
      break;
    }
    const double nearest_low = arf_get_d(low, ARF_RND_NEAR);
    const double nearest_high = arf_get_d(high, ARF_RND_NEAR);
    if (nearest_low != nearest_high) continue;
    const bool nearest = rounding == Rounding::nearest_even;
    result = round_to(format, rounding, nearest ? nearest_low : a);
    break;
  }
  arb_clear(value);
  arf_clear(low);
  arf_clear(high);
  return result;
}

double rounded(const FloatFormat& format, Rounding rounding, Base base, double x) {
  const double y = base == Base::e ? std::exp(x) : std::exp2(x);
  const bool exact = x == 0 || (base == Base::two && x == std::floor(x));
  if (exact || !std::isfinite(y) || y == 0) return round_to(format, rounding, y);
  const double low = round_to(format, rounding, y * (1 - kLibraryError));
  const double high = round_to(format, rounding, y * (1 + kLibraryError));
  return low == high ? low : certified(format, rounding, base, x);
}

constexpr std::array<float, 2> kDegree1{1.0F, 0.92355686F};
constexpr std::array<float, 3> kDegree2{1.0F, 0.66596097F, 0.3299324F};
constexpr std::array<float, 4> kDegree3{1.0F, 0.6951461434F, 0.2275643945F, 0.0771190897F};
constexpr std::array<float, 5> kDegree4{1.0F, 0.69304484F, 0.2412802F, 0.052242473F, 0.013426684F};
constexpr std::array<float, 6> kDegree5{1.0F,         0.6931513F,   0.24016444F,
                                        0.055799913F, 0.009017031F, 0.00186713F};
constexpr std::array<double, 5> kErrors{3.83e-2, 2.06e-3, 8.77e-5, 2.91e-6, 9.4e-8};

}  // namespace

double exp_rounded(const FloatFormat& format, Rounding rounding, double x) {
  return rounded(format, rounding, Base::e, x);
}

double exp2_rounded(const FloatFormat& format, Rounding rounding, double x) {
  return rounded(format, rounding, Base::two, x);
}

std::span<const float> exp2_coefficients(int degree) {
  switch (degree) {
    case 1: return kDegree1;
    case 2: return kDegree2;
    case 3: return kDegree3;
    case 4: return kDegree4;
    case 5: return kDegree5;
    default: reject("exp2 degree", std::to_string(degree), "1..5");
  }
}

double exp2_polynomial_error(int degree) {
  return kErrors.at(exp2_coefficients(degree).size() - 2);
}

float exp2_polynomial(int degree, float t) {
  if (std::isnan(t)) return t;
  if (t < -126) return 0;
  if (t >= 128) return std::numeric_limits<float>::infinity();
  const float whole = std::floor(t);
  const float fraction = t - whole;
  const std::span<const float> c = exp2_coefficients(degree);
  float sum = c.back();
  for (std::size_t k = c.size() - 1; k-- > 0;) sum = std::fma(sum, fraction, c[k]);
  return std::ldexp(sum, static_cast<int>(whole));
}

}  // namespace flashbound
