// Results of +, x, / and fused x + together with what their rounding lost, so that they can be
// rounded to a narrower format as if they had been rounded once.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace flashbound {

// value: the exact result rounded to nearest in T. rest: has the sign of exact - value and about
// its size (in the subnormals of T the sign only); 0 where value is exact. A finite operation that
// overflows has an infinite value and a rest towards zero.
template <class T>
struct Inexact {
  T value;
  T rest;
};

namespace inexact {

template <class T>
constexpr int kDigits = std::numeric_limits<T>::digits;
template <class T>
constexpr int kExponentMin = std::numeric_limits<T>::min_exponent - 1;
// Powers of two by which numbers are brought into the middle of the range of T.
template <class T>
constexpr int kLift = sizeof(T) == 4 ? 80 : 600;

// Below it the error of a product or the remainder of a quotient may not be a number of T.
template <class T>
T small() {
  return std::ldexp(T{1}, kExponentMin<T> + 2 * kDigits<T>);
}

// For a value that is not finite.
template <class T>
Inexact<T> overflowed(T value, bool finite_operands) {
  return {value, finite_operands ? -std::copysign(T{1}, value) : T{0}};
}

// a + b - sum exactly, by Knuth's two-sum.
template <class T>
T sum_error(T a, T b, T sum) {
  const T b_part = sum - a;
  return (a - (sum - b_part)) + (b - b_part);
}

// `value` is the exact result rounded to nearest; the exact result times 2^lift is
// lifted.value + (lifted.rest in sign), known to more bits than value has.
template <class T>
Inexact<T> lowered(T value, const Inexact<T>& lifted, int lift) {
  // Exact: both are multiples of the last place of one of them, and they nearly agree.
  const T difference = lifted.value - std::ldexp(value, lift);
  const T rest = difference != 0 ? difference : lifted.rest;
  if (rest == 0) return {value, T{0}};
  const T size = std::ldexp(std::abs(rest), -lift);
  return {value, std::copysign(std::max(size, std::numeric_limits<T>::denorm_min()), rest)};
}

}  // namespace inexact

template <class T>
Inexact<T> inexact_sum(T a, T b) {
  const T sum = a + b;
  if (!std::isfinite(sum)) {
    return inexact::overflowed(sum, std::isfinite(a) && std::isfinite(b));
  }
  return {sum, inexact::sum_error(a, b, sum)};
}

template <class T>
Inexact<T> inexact_product(T a, T b) {
  const T product = a * b;
  if (!std::isfinite(product)) {
    return inexact::overflowed(product, std::isfinite(a) && std::isfinite(b));
  }
  if (std::abs(product) >= inexact::small<T>()) return {product, std::fma(a, b, -product)};
  if (a == 0 || b == 0) return {product, T{0}};
  int a_exponent = 0;
  int b_exponent = 0;
  const T x = std::frexp(a, &a_exponent);
  const T y = std::frexp(b, &b_exponent);
  const T lifted = x * y;
  return inexact::lowered(product, Inexact<T>{lifted, std::fma(x, y, -lifted)},
                          -(a_exponent + b_exponent));
}

template <class T>
Inexact<T> inexact_quotient(T a, T b) {
  const T quotient = a / b;
  if (!std::isfinite(quotient)) {
    return inexact::overflowed(quotient, std::isfinite(a) && std::isfinite(b) && b != 0);
  }
  if (a == 0 || std::isinf(b)) return {quotient, T{0}};
  const bool small = std::abs(a) < inexact::small<T>() ||
                     std::abs(quotient) < inexact::small<T>() || std::abs(b) < inexact::small<T>();
  // Large ones overflow in quotient x b no more than a itself does.
  if (!small) return {quotient, std::fma(-quotient, b, a) / b};
  int a_exponent = 0;
  int b_exponent = 0;
  const T x = std::frexp(a, &a_exponent);
  const T y = std::frexp(b, &b_exponent);
  const T lifted = x / y;
  return inexact::lowered(quotient, Inexact<T>{lifted, std::fma(-lifted, y, x) / y},
                          b_exponent - a_exponent);
}

// a b + c.
template <class T>
Inexact<T> inexact_fused(T a, T b, T c) {
  const T value = std::fma(a, b, c);
  const bool finite = std::isfinite(a) && std::isfinite(b) && std::isfinite(c);
  if (!finite || std::isinf(value)) return inexact::overflowed(value, finite);
  if (a == 0 || b == 0) return {value, T{0}};
  if (c == 0) return inexact_product(a, b);
  const T product = a * b;
  constexpr int kLift = inexact::kLift<T>;
  const bool a_larger = std::abs(a) > std::abs(b);
  if (std::isinf(product)) {  // c brings it back into range
    const T x = std::ldexp(a, a_larger ? -kLift : 0);
    const T y = std::ldexp(b, a_larger ? 0 : -kLift);
    return inexact::lowered(value, inexact_fused(x, y, std::ldexp(c, -kLift)), -kLift);
  }
  if (std::abs(product) < inexact::small<T>()) {
    if (std::abs(c) >= std::ldexp(inexact::small<T>(), 2 * inexact::kDigits<T>)) {
      const T sign = std::signbit(a) == std::signbit(b) ? T{1} : T{-1};
      return {c, std::copysign(std::max(std::abs(product), std::numeric_limits<T>::denorm_min()),
                               sign)};
    }
    const T x = std::ldexp(a, a_larger ? 0 : kLift);
    const T y = std::ldexp(b, a_larger ? kLift : 0);
    return inexact::lowered(value, inexact_fused(x, y, std::ldexp(c, kLift)), kLift);
  }
  // exact = sum + addition_error + product_error = moved + moved_error + lost
  const T product_error = std::fma(a, b, -product);
  const T sum = product + c;
  const T addition_error = inexact::sum_error(product, c, sum);
  const T errors = addition_error + product_error;
  const T lost = inexact::sum_error(addition_error, product_error, errors);
  const T moved = sum + errors;
  const T moved_error = inexact::sum_error(sum, errors, moved);
  // `moved` is `value` or, where lost decides a tie, its neighbour. lost is smaller than any other
  // part that is not zero.
  const T rest = (moved - value) + moved_error;
  return {value, rest != 0 ? rest : lost};
}

}  // namespace flashbound
