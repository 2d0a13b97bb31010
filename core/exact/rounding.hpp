// From enclosures to correctly rounded doubles (nearest, ties to even; a zero is always +0).
#pragma once

#include "core/exact/ball.hpp"

#include <optional>

namespace flashbound {

// What a ball says of the double nearest to the number within.
struct Rounding {
  std::optional<double> value;     // when all of the ball rounds to it
  std::optional<Dyadic> boundary;  // when it holds but one boundary between two doubles
  double below = 0;                // those two doubles
  double above = 0;
};
Rounding round_ball(arb_srcptr ball);

// The double for a number less than (-1), equal to (0) or greater than (1) the boundary.
double round_at_boundary(const Rounding& rounding, int sign);

double round_rational(const Rational& value);

}  // namespace flashbound
