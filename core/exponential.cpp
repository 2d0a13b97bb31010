#include "core/exponential.hpp"

#include "core/errors.hpp"
#include "core/rounder.hpp"

#include <algorithm>
#include <arb.h>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace flashbound {
namespace {

constexpr int kPrecisionCap = 4096;

enum class Base { e, two };

// An enclosure of the exponential, to `precision` bits.
void enclose(arb_t value, Base base, double x, slong precision) {
  arb_set_d(value, x);
  if (base == Base::two) {
    arb_t log2;
    arb_init(log2);
    arb_const_log2(log2, precision);
    arb_mul(value, value, log2, precision);
    arb_clear(log2);
  }
  arb_exp(value, value, precision);
}

// The double nearest to a value between low and high, and on which side of it the value lies;
// nullopt while these do not tell. The exponential is itself no double (of 0, and 2^x of whole
// numbers, are not asked for).
std::optional<Inexact<double>> nearest_double(const arf_t low, const arf_t high) {
  const double nearest = arf_get_d(low, ARF_RND_NEAR);
  if (nearest != arf_get_d(high, ARF_RND_NEAR)) return std::nullopt;
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  if (arf_cmp_d(low, nearest) > 0) return Inexact<double>{nearest, kSmallest};
  if (arf_cmp_d(high, nearest) < 0) return Inexact<double>{nearest, -kSmallest};
  return std::nullopt;
}

// One certified rounding by ball arithmetic.
double certified(const FloatFormat& format, Rounding rounding, Base base, double x) {
  arb_t value;
  arf_t low;
  arf_t high;
  arb_init(value);
  arf_init(low);
  arf_init(high);
  std::optional<Inexact<double>> exact;
  for (slong precision = 128; !exact && precision <= kPrecisionCap; precision *= 2) {
    enclose(value, base, x, precision);
    arb_get_lbound_arf(low, value, precision);
    arb_get_ubound_arf(high, value, precision);
    exact = nearest_double(low, high);
  }
  arb_clear(value);
  arf_clear(low);
  arf_clear(high);
  if (!exact) return std::numeric_limits<double>::quiet_NaN();
  RandomStream none;
  return Rounder<double>(format, rounding, {}, none).once(*exact);
}

double rounded(const FloatFormat& format, Rounding rounding, Base base, double x) {
  const double y = base == Base::e ? std::exp(x) : std::exp2(x);
  if (std::isinf(y)) {
    const bool finite = std::isfinite(x) && rounding == Rounding::toward_zero;
    return round_to(format, rounding, finite ? std::numeric_limits<double>::max() : y);
  }
  const bool exact = x == 0 || (base == Base::two && x == std::floor(x));
  constexpr double kCertainlyZero = -1200;
  if (exact || std::isnan(y) || x < kCertainlyZero) return round_to(format, rounding, y);
  const ExponentialRange range = exponential_range(y);
  const double low = round_to(format, rounding, range.low);
  const double high = round_to(format, rounding, range.high);
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

ExponentialRange exponential_range(double y) {
  constexpr double kRelative = 0x1p-51;
  constexpr double kAbsolute = 0x1p-1073;
  return {std::max(y * (1 - kRelative) - kAbsolute, 0.0), y * (1 + kRelative) + kAbsolute};
}

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
