// round_lane() against round_to() in both carriers.
#include "core/lane_rounding.hpp"

#include "tests/core/float_format_oracle.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace flashbound {
namespace {

// Formats that lane_rounding() has to accept in the carrier T, by the texts that name them.
template <class T>
std::vector<FloatFormat> accepted_formats() {
  const int bits_max = sizeof(T) == 4 ? 11 : 25;
  const int exponent_bits_max = sizeof(T) == 4 ? 8 : 11;
  std::vector<FloatFormat> formats{float_format(NumberFormat::fp8e4m3)};
  for (int p = 2; p <= bits_max; ++p) {
    for (int e = 2; e <= exponent_bits_max; ++e) {
      for (const Overflow overflow : {Overflow::infinity, Overflow::saturate, Overflow::nan}) {
        formats.push_back(ieee_like(p - 1, e));
        formats.back().overflow = overflow;
      }
    }
  }
  return formats;
}

// Numbers of the carrier as bits: the NaN of operations, never one whose payload rounding could
// carry out of or cut away.
template <class T>
T of_bits(typename LaneRounding<T>::Bits bits) {
  const T x = std::bit_cast<T>(bits);
  return std::isnan(x) ? std::copysign(std::numeric_limits<T>::quiet_NaN(), x) : x;
}

template <class T>
void check_same(const FloatFormat& format, const LaneRounding<T>& rounding, T x) {
  const auto lane = static_cast<double>(round_lane(rounding, x));
  const double expected = round_to(format, static_cast<double>(x));
  if (testing::same(lane, expected)) return;  // millions of values: no assertion each
  CAPTURE(to_string(format));
  const auto given = static_cast<double>(x);
  CAPTURE(given);
  CAPTURE(lane);
  CAPTURE(expected);
  FAIL_CHECK("round_lane differs from round_to");
}

template <class T>
void check_with_neighbours(const FloatFormat& format, const LaneRounding<T>& rounding, T x) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const T near : {std::nextafter(x, -kInfinity), x, std::nextafter(x, kInfinity)}) {
    check_same(format, rounding, near);
    check_same(format, rounding, -near);
  }
}

// Numbers, midpoints and limits of the format, where float or double has them.
template <class T>
void check_edges(const FloatFormat& format, const LaneRounding<T>& rounding) {
  const double smallest = smallest_positive(format);
  const auto check = [&](double x) { check_with_neighbours(format, rounding, static_cast<T>(x)); };
  for (const double x : {0.0, smallest / 4, smallest / 2, smallest, 1.5 * smallest, 2.5 * smallest,
                         smallest_normal(format), smallest_normal(format) - smallest / 2}) {
    check(x);
  }
  const double last = ulp(format, format.largest);
  for (const double x : {format.largest - last / 2, format.largest, format.largest + last / 4,
                         format.largest + last / 2, format.largest + last}) {
    check(x);
  }
  check(1 + unit_roundoff(format));
  check(1 + 3 * unit_roundoff(format));
  check(static_cast<double>(std::numeric_limits<T>::max()));
  check(static_cast<double>(std::numeric_limits<T>::denorm_min()));
  check_same(format, rounding, std::numeric_limits<T>::infinity());
  check_same(format, rounding, -std::numeric_limits<T>::infinity());
  check_same(format, rounding, std::numeric_limits<T>::quiet_NaN());
}

template <class T>
void check_random_bits(const FloatFormat& format, const LaneRounding<T>& rounding, int count) {
  using Bits = typename LaneRounding<T>::Bits;
  std::mt19937_64 engine(static_cast<std::uint64_t>(format.significand_bits * 100));
  const int shift = std::numeric_limits<T>::digits - format.significand_bits;
  for (int at = 0; at < count; ++at) {
    const auto bits = static_cast<Bits>(engine());
    check_same(format, rounding, of_bits<T>(bits));
    // The last bits near a tie: all zero but the first of the dropped ones.
    const Bits tie = (bits >> shift << shift) | Bits{1} << (shift - 1);
    check_same(format, rounding, of_bits<T>(tie));
    check_same(format, rounding, of_bits<T>(tie - 1));
    check_same(format, rounding, of_bits<T>(tie + 1));
    // Around the format's own range, which random exponents of a double rarely meet.
    const double exponent = static_cast<double>(engine() % 64) - 48;
    const double scaled = std::ldexp(static_cast<double>(bits), static_cast<int>(exponent)) *
                          format.largest * 0x1p-40;
    check_same(format, rounding, static_cast<T>(scaled));
  }
}

template <class T>
void check_all_formats() {
  for (const FloatFormat& format : accepted_formats<T>()) {
    CAPTURE(to_string(format));
    const auto rounding = lane_rounding<T>(format);
    REQUIRE(rounding.has_value());
    check_edges<T>(format, *rounding);
    check_random_bits<T>(format, *rounding, 1000);
  }
}

// Every number of a 16-bit format, its upper midpoint and what lies next to both.
template <class T>
void check_every_number(const FloatFormat& numbers, const FloatFormat& format) {
  const auto rounding = lane_rounding<T>(format);
  REQUIRE(rounding.has_value());
  const std::vector<double> all = testing::magnitudes(numbers);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    check_with_neighbours(format, *rounding, static_cast<T>(all[i]));
    check_with_neighbours(format, *rounding, static_cast<T>(all[i] + (all[i + 1] - all[i]) / 2));
  }
}

}  // namespace

TEST_SUITE("core.lane_rounding") {
  TEST_CASE_TEMPLATE("round_lane = round_to for every format it accepts", T, float, double) {
    check_all_formats<T>();
  }

  TEST_CASE_TEMPLATE("round_lane = round_to on all 16-bit patterns and midpoints", T, float,
                     double) {
    for (const NumberFormat numbers : {NumberFormat::fp16, NumberFormat::bf16}) {
      for (const NumberFormat to : {NumberFormat::fp16, NumberFormat::bf16, NumberFormat::tf32,
                                    NumberFormat::fp8e4m3, NumberFormat::fp8e5m2}) {
        check_every_number<T>(float_format(numbers), float_format(to));
      }
    }
  }

  TEST_CASE("fp32 numbers and midpoints round alike in double") {
    const FloatFormat fp32 = float_format(NumberFormat::fp32);
    check_edges<double>(fp32, *lane_rounding<double>(fp32));
    check_random_bits<double>(fp32, *lane_rounding<double>(fp32), 300'000);
  }

  TEST_CASE("the carrier's own format keeps every bit") {
    const auto own = lane_rounding<float>(float_format(NumberFormat::fp32));
    REQUIRE(own.has_value());
    CHECK(own->kind == LaneKind::none);
    CHECK(std::bit_cast<std::uint32_t>(round_lane(*own, 0x1.234568p-140F)) ==
          std::bit_cast<std::uint32_t>(0x1.234568p-140F));
  }

  TEST_CASE("formats that the carrier cannot round to are refused") {
    for (const char* text :
         {"m11", "m11e5", "m7e9", "m10", "fp64", "bf16/flush", "fp32/saturate"}) {
      CAPTURE(text);
      CHECK_FALSE(lane_rounding<float>(parse_float_format("format", text)).has_value());
    }
    for (const char* text : {"m25", "m51", "fp64/flush", "fp64/saturate", "fp16/flush"}) {
      CAPTURE(text);
      CHECK_FALSE(lane_rounding<double>(parse_float_format("format", text)).has_value());
    }
  }
}

}  // namespace flashbound
