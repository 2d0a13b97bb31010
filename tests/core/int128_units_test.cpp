// Exact integers at the edges of 128 bits, and units that do not mix.
#include "core/int128.hpp"
#include "core/units.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <limits>
#include <string>

TEST_SUITE_BEGIN("core.units");

namespace flashbound {
namespace {

constexpr Int128 kMax = std::numeric_limits<Int128>::max();
constexpr Int128 kMin = std::numeric_limits<Int128>::min();

TEST_CASE("decimal digits are right from one end of 128 bits to the other") {
  CHECK(to_decimal(0) == "0");
  CHECK(to_decimal(-1) == "-1");
  CHECK(to_decimal(10) == "10");
  CHECK(to_decimal(Int128{std::numeric_limits<Index>::max()} + 1) == "9223372036854775808");
  CHECK(to_decimal(kMax) == "170141183460469231731687303715884105727");
  CHECK(to_decimal(kMin) == "-170141183460469231731687303715884105728");
  Int128 power = 1;
  std::string text = "1";
  for (int digit = 0; digit < 38; ++digit) {
    CHECK(to_decimal(power) == text);
    CHECK(to_decimal(-power) == "-" + text);
    power *= 10;
    text += '0';
  }
}

TEST_CASE("arithmetic is exact up to the last value and throws beyond it") {
  CHECK(checked_add(kMax - 1, 1) == kMax);
  CHECK_THROWS_AS(checked_add(kMax, 1), CountOverflow);
  CHECK(checked_sub(kMin + 1, 1) == kMin);
  CHECK_THROWS_AS(checked_sub(kMin, 1), CountOverflow);
  const Int128 half = Int128{1} << 126;
  CHECK(checked_mul(half, -2) == kMin);
  CHECK_THROWS_AS(checked_mul(half, 2), CountOverflow);
  CHECK(checked_mul(kMax, 1) == kMax);
  CHECK_THROWS_AS(checked_mul(kMin, -1), CountOverflow);
}

TEST_CASE("the largest legal counts stay exact") {
  // Scores of 2^24 x 2^24 pairs in 64 x 16 heads: beyond 64 bits in bytes of 576 columns.
  const Elements pairs = (Int128{1} << 48) * Elements(64 * 16);
  CHECK(to_string(bytes_of(576 * pairs, 8)) == "1328165573307087716352");
}

TEST_CASE("quantities of one unit add and compare and scale") {
  Bytes total(5);
  total += Bytes(7);
  total -= Bytes(2);
  CHECK(total == Bytes(10));
  CHECK(total + Bytes(1) > total);
  CHECK(total - Bytes(11) < Bytes{});
  CHECK(3 * total == Bytes(30));
  CHECK(ratio(total, Bytes(4)) == 2.5);
  CHECK(bytes_of(Elements(6), 2) == Bytes(12));
  CHECK_THROWS_AS(Bytes(kMax) + Bytes(1), CountOverflow);
  CHECK_THROWS_AS(bytes_of(Elements(kMax), 2), CountOverflow);
}

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};

static_assert(Addable<Bytes, Bytes> && Comparable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Elements> && !Comparable<Bytes, Elements>);
static_assert(!Addable<Bytes, int> && !Multipliable<Bytes, Bytes>);
static_assert(!std::convertible_to<Bytes, Elements> && !std::convertible_to<int, Bytes>);
static_assert(!std::convertible_to<Bytes, Int128>);

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
