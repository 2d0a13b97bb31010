// Sums of floor((a i + b) / m) over i = 0 .. n-1 in O(log) steps, exactly. They close the sums
// over a band mask's blocks, whose edges are straight lines cut into whole blocks.
#pragma once

#include "core/int128.hpp"

#include <algorithm>
#include <utility>

namespace flashbound {

// a / b rounded towards minus infinity; b > 0.
constexpr Int128 floor_div(Int128 a, Int128 b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr Int128 ceil_div(Int128 a, Int128 b) { return -floor_div(-a, b); }

// Sum over i in [0, n) of floor((a i + b) / m); n >= 0, m > 0, a >= 0. Whole multiples of m leave
// the sum first; what is left counts lattice points under a line, which are counted along the
// other axis instead, as Euclid's algorithm would swap its two numbers.
constexpr Int128 floor_sum(Int128 n, Int128 a, Int128 b, Int128 m) {
  Int128 sum = 0;
  while (n > 0) {
    const Int128 slope = a / m;
    const Int128 offset = floor_div(b, m);
    sum = checked_add(sum, checked_mul(slope, checked_mul(n, n - 1) / 2));
    sum = checked_add(sum, checked_mul(offset, n));
    a -= slope * m;
    b -= offset * m;
    if (a == 0) break;
    const Int128 top = checked_add(checked_mul(a, n), b);
    n = top / m;
    b = top % m;
    std::swap(a, m);
  }
  return sum;
}

// First i with floor((a i + b) / m) >= bound, cut to [0, n]; a > 0.
constexpr Int128 first_at_least(Int128 bound, Int128 n, Int128 a, Int128 b, Int128 m) {
  return std::clamp<Int128>(ceil_div(checked_sub(checked_mul(bound, m), b), a), 0, n);
}

// Sum over i in [0, n) of floor((a i + b) / m) cut to [0, top]; a > 0, m > 0, top >= 0. Three
// pieces: zero, the line, the top.
constexpr Int128 clamped_floor_sum(Int128 n, Int128 a, Int128 b, Int128 m, Int128 top) {
  const Int128 rise = first_at_least(0, n, a, b, m);
  const Int128 flat = first_at_least(top, n, a, b, m);
  const Int128 line = floor_sum(flat - rise, a, checked_add(checked_mul(a, rise), b), m);
  return checked_add(line, checked_mul(top, n - flat));
}

}  // namespace flashbound
