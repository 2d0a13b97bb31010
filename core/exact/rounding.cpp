#include "core/exact/rounding.hpp"

#include <cmath>
#include <limits>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double nearest(const Dyadic& value) {
  return arf_get_d(value.get(), ARF_RND_NEAR) + 0.0;  // -0 + 0 = +0
}

// The midpoint of neighbouring doubles; infinity stands for 2^1024.
Dyadic midpoint(double below, double above) {
  const auto finite = [](double value) {
    if (std::isfinite(value)) return Dyadic(value);
    Dyadic power(std::copysign(1.0, value));
    arf_mul_2exp_si(power.get(), power.get(), 1024);
    return power;
  };
  Dyadic sum = finite(below);
  sum += finite(above);
  arf_mul_2exp_si(sum.get(), sum.get(), -1);
  return sum;
}

}  // namespace

Rounding round_ball(arb_srcptr ball) {
  Rounding result;
  if (arb_is_finite(ball) == 0) return result;
  // Ends rounded outwards: with more bits than the midpoint has, that costs next to nothing.
  const slong bits = arb_bits(ball) + 64;
  Dyadic lower;
  Dyadic upper;
  arb_get_lbound_arf(lower.get(), ball, bits);
  arb_get_ubound_arf(upper.get(), ball, bits);
  result.below = nearest(lower);
  result.above = nearest(upper);
  if (result.below == result.above) {
    result.value = result.below;
  } else if (std::nextafter(result.below, kInfinity) == result.above) {
    result.boundary = midpoint(result.below, result.above);
  }
  return result;
}

double round_at_boundary(const Rounding& rounding, int sign) {
  if (sign < 0) return rounding.below;
  return sign > 0 ? rounding.above : nearest(*rounding.boundary);
}

double round_rational(const Rational& value) {
  Ball ball;
  arb_set_fmpq(ball.get(), value.get(), 256);
  const Rounding rounding = round_ball(ball.get());
  if (rounding.value) return *rounding.value;
  // A ball of 256 bits holds one boundary at most.
  const Rational boundary(*rounding.boundary);
  return round_at_boundary(rounding, fmpq_cmp(value.get(), boundary.get()));
}

}  // namespace flashbound
