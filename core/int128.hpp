// Exact integers beyond 64 bits: counts of N = 2^24 with many heads overflow int64.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace flashbound {

// Sizes, indices and dimensions. Signed, so that differences are meaningful.
using Index = std::int64_t;

// Exact counts. __extension__ because ISO C++ has no 128-bit integer.
__extension__ using Int128 = __int128;

// Thrown when an exact count would leave 128 bits (no legal problem reaches this).
struct CountOverflow : std::overflow_error {
  using std::overflow_error::overflow_error;
};

// Sum, difference and product that throw CountOverflow instead of wrapping.
constexpr Int128 checked_add(Int128 a, Int128 b) {
  Int128 result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw CountOverflow("a count exceeds 128 bits");
  return result;
}
constexpr Int128 checked_sub(Int128 a, Int128 b) {
  Int128 result = 0;
  if (__builtin_sub_overflow(a, b, &result)) throw CountOverflow("a count exceeds 128 bits");
  return result;
}
constexpr Int128 checked_mul(Int128 a, Int128 b) {
  Int128 result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw CountOverflow("a count exceeds 128 bits");
  return result;
}

// Decimal digits of `value`.
std::string to_decimal(Int128 value);

}  // namespace flashbound
