// fp64 to fp16 against an oracle that searches the fp16 numbers in exact arithmetic.
#include "experiments/npy_header.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint16_t kHalfInfinity = 0x7C00;
constexpr std::uint16_t kHalfSign = 0x8000;

// The value of a bit pattern from the definition of binary16; all of them are exact in fp64.
double value_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction == 0 ? kInfinity : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & kHalfSign) != 0 ? -magnitude : magnitude;
}

// The magnitude that comes after the largest finite one if the exponent had no end.
double magnitude_or_next(std::uint16_t bits) {
  return bits == kHalfInfinity ? 65536.0 : value_of(bits);
}

// Nearest even by bisection over magnitudes, which grow with their bits. Midpoints of neighbours
// have 12 bits and are exact, so the comparison with `value` is too.
std::uint16_t nearest_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? kHalfSign : 0;
  const double magnitude = std::abs(value);
  if (magnitude >= 65536) return sign | kHalfInfinity;
  std::uint16_t low = 0;
  std::uint16_t high = kHalfInfinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (magnitude_or_next(middle) <= magnitude ? low : high) = middle;
  }
  const double midpoint = (magnitude_or_next(low) + magnitude_or_next(high)) / 2;
  const bool up = magnitude > midpoint || (magnitude == midpoint && (low & 1) != 0);
  return sign | (up ? high : low);
}

std::uint16_t rounded(double value) {
  return Eigen::numext::bit_cast<std::uint16_t>(round_to_half(value));
}

TEST_SUITE("experiments.npy") {
  TEST_CASE("every fp16 number widened and rounded back is itself") {
    for (unsigned pattern = 0; pattern <= 0xFFFF; ++pattern) {
      const auto bits = static_cast<std::uint16_t>(pattern);
      const double value = value_of(bits);
      const auto widened =
          static_cast<double>(static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits)));
      const std::uint16_t back = rounded(value);
      if (std::isnan(value)) {
        const bool is_nan = std::isnan(widened) && std::isnan(value_of(back));
        CHECK_MESSAGE(is_nan, bits);
      } else if (back != bits || widened != value || std::signbit(widened) != std::signbit(value)) {
        FAIL_CHECK("pattern " << bits << " became " << back);
      }
    }
  }

  TEST_CASE("ties between fp16 neighbours go to the even one and any excess decides") {
    for (unsigned pattern = 0; pattern < kHalfInfinity; ++pattern) {
      const auto bits = static_cast<std::uint16_t>(pattern);
      const auto next = static_cast<std::uint16_t>(pattern + 1);
      const double midpoint = (magnitude_or_next(bits) + magnitude_or_next(next)) / 2;
      for (const double sign : {1.0, -1.0}) {
        const std::uint16_t sign_bit = sign < 0 ? kHalfSign : 0;
        const std::uint16_t even = (bits & 1) == 0 ? bits : next;
        // One fp64 step beside the tie is lost in fp32: what rounds twice goes astray here.
        const bool right = rounded(sign * midpoint) == (sign_bit | even) &&
                           rounded(sign * std::nextafter(midpoint, 0)) == (sign_bit | bits) &&
                           rounded(sign * std::nextafter(midpoint, kInfinity)) == (sign_bit | next);
        if (!right) FAIL_CHECK("between " << bits << " and " << next << " with sign " << sign);
      }
    }
  }

  TEST_CASE("a double rounding through fp32 would go wrong here") {
    const double trap = 1 + 0x1p-11 + 0x1p-40;  // fp32 makes it the tie 1 + 2^-11, which goes to 1
    CHECK(static_cast<double>(static_cast<float>(trap)) == 1 + 0x1p-11);
    CHECK(value_of(rounded(trap)) == 1 + 0x1p-10);
    CHECK(value_of(rounded(-trap)) == -(1 + 0x1p-10));
    const double below = 1 + 0x1p-10 + 0x1p-11 - 0x1p-40;
    CHECK(value_of(rounded(below)) == 1 + 0x1p-10);
  }

  TEST_CASE("overflow begins at 65520 and underflow ends at half the least subnormal") {
    CHECK(rounded(65504) == 0x7BFF);
    CHECK(rounded(std::nextafter(65520.0, 0)) == 0x7BFF);
    CHECK(rounded(65520) == kHalfInfinity);
    CHECK(rounded(-65520) == (kHalfSign | kHalfInfinity));
    CHECK(rounded(1e300) == kHalfInfinity);
    CHECK(rounded(kInfinity) == kHalfInfinity);
    CHECK(rounded(-kInfinity) == (kHalfSign | kHalfInfinity));
    CHECK(rounded(0x1p-25) == 0);
    CHECK(rounded(std::nextafter(0x1p-25, 1)) == 1);
    CHECK(rounded(-0x1p-1074) == kHalfSign);
    CHECK(rounded(-0.0) == kHalfSign);
    CHECK(rounded(std::nextafter(0x1p-14, 0)) == 0x0400);
    CHECK((rounded(std::numeric_limits<double>::quiet_NaN()) & 0x7FFF) > kHalfInfinity);
  }

  TEST_CASE("random numbers of all magnitudes round as the oracle says") {
    std::mt19937_64 engine(1);
    for (int trial = 0; trial < 200000; ++trial) {
      // Exponents from far below fp16's to far above it, fractions short and long.
      const auto exponent = static_cast<int>(engine() % 60) - 40;
      const std::uint64_t kept = ~std::uint64_t{0} << engine() % 53;
      const double fraction = static_cast<double>(engine() >> 11 & kept) * 0x1p-53;
      const double value = std::ldexp(engine() % 2 == 0 ? 1 + fraction : -1 - fraction, exponent);
      if (rounded(value) != nearest_half(value)) FAIL_CHECK("value " << value);
    }
  }
}

}  // namespace
}  // namespace flashbound
