#include "core/float_format.hpp"

#include "core/errors.hpp"
#include "tests/core/float_format_oracle.hpp"
#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>

namespace flashbound {
namespace {

using testing::contains;
using testing::magnitudes;
using testing::rejection;
using testing::same;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Formats small enough to list, with every kind of overflow, with and without subnormals.
std::vector<FloatFormat> listed_formats() {
  std::vector<FloatFormat> formats;
  for (const char* text : {"fp8e4m3", "fp8e5m2", "fp16", "m1e2", "m1e5", "m2e3", "m3e4", "m3e2",
                           "m6e3", "m4e6", "m10e2"}) {
    for (const char* overflow : {"/infinity", "/saturate", "/nan"}) {
      for (const char* flush : {"", "/flush"}) {
        formats.push_back(parse_float_format("format", std::string(text) + overflow + flush));
      }
    }
  }
  return formats;
}

// Doubles of any bits: all exponents, zeros, subnormals, infinities and NaN occur.
double any_double(std::mt19937_64& engine) { return std::bit_cast<double>(engine()); }

// Any significand at the exponents where the format has numbers, with a few beyond at both ends.
double double_near(std::mt19937_64& engine, const FloatFormat& format) {
  const int low = format.exponent_min - format.significand_bits - 2;
  const int high = std::ilogb(format.largest) + 2;
  const int exponent = low + static_cast<int>(engine() % static_cast<unsigned>(high - low + 1));
  const double significand = 1 + static_cast<double>(engine() >> 12) * 0x1p-52;
  return std::ldexp((engine() & 1) != 0 ? significand : -significand, exponent);
}

// Rounding by scaling to whole numbers, of finite x that do not overflow.
double by_whole_numbers(const FloatFormat& format, Rounding rounding, double x) {
  const int exponent = std::max(std::ilogb(x), format.exponent_min) - format.significand_bits + 1;
  const double whole = std::ldexp(x, -exponent);
  return std::ldexp(rounding == Rounding::toward_zero ? std::trunc(whole) : std::nearbyint(whole),
                    exponent);
}

}  // namespace

TEST_SUITE("core.float_format") {
  TEST_CASE("named formats have the numbers that their standards state") {
    struct Row {
      NumberFormat format;
      double largest, smallest_normal, smallest_positive;
    };
    // IEEE 754-2019 table 3.5, OCP OFP8 1.0 table 1; bf16 and tf32 have fp32's exponents.
    const Row rows[] = {
        {NumberFormat::fp64, std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074},
        {NumberFormat::fp32, static_cast<double>(std::numeric_limits<float>::max()), 0x1p-126,
         0x1p-149},
        {NumberFormat::tf32, 0x1.ffcp127, 0x1p-126, 0x1p-136},
        {NumberFormat::bf16, 0x1.fep127, 0x1p-126, 0x1p-133},
        {NumberFormat::fp16, 65504, 0x1p-14, 0x1p-24},
        {NumberFormat::fp8e4m3, 448, 0x1p-6, 0x1p-9},
        {NumberFormat::fp8e5m2, 57344, 0x1p-14, 0x1p-16},
    };
    for (const Row& row : rows) {
      const FloatFormat format = float_format(row.format);
      CAPTURE(name(row.format));
      CHECK(format.largest == row.largest);
      CHECK(smallest_normal(format) == row.smallest_normal);
      CHECK(smallest_positive(format) == row.smallest_positive);
      CHECK(unit_roundoff(format) == unit_roundoff(row.format));
      CHECK(format.significand_bits == facts(row.format).significand_bits);
      CHECK(format.exponent_min == facts(row.format).exponent_min);
      CHECK(round_to(format, row.largest) == row.largest);
      CHECK(round_to(format, row.smallest_positive) == row.smallest_positive);
      CHECK(round_to(format, row.smallest_positive / 2) == 0);
    }
  }

  TEST_CASE("rounding finds the number that a search of all numbers finds") {
    for (const FloatFormat& format : listed_formats()) {
      CAPTURE(to_string(format));
      const std::vector<double> all = magnitudes(format);
      Index wrong = 0;
      for (double x : testing::telling_values(all)) {
        const double nearest = round_to(format, x);
        const double truncated = round_to(format, Rounding::toward_zero, x);
        if (!same(nearest, testing::oracle_nearest(format, all, x)) ||
            !same(truncated, testing::oracle_toward_zero(format, all, x))) {
          CAPTURE(x);
          CAPTURE(nearest);
          CAPTURE(truncated);
          CHECK(++wrong == 0);
          if (wrong > 3) return;
        }
      }
      CHECK(wrong == 0);
    }
  }

  TEST_CASE("rounding agrees with scaling to whole numbers for all widths") {
    std::mt19937_64 engine(1);
    for (int mantissa_bits = 1; mantissa_bits <= 52; ++mantissa_bits) {
      for (int exponent_bits = 2; exponent_bits <= 11; ++exponent_bits) {
        const FloatFormat format = ieee_like(mantissa_bits, exponent_bits);
        CAPTURE(to_string(format));
        Index wrong = 0;
        for (int repeat = 0; repeat < 300; ++repeat) {
          const double x = double_near(engine, format);
          if (!std::isfinite(x) || x == 0 || std::abs(x) > format.largest) continue;
          wrong += same(round_to(format, Rounding::toward_zero, x),
                        by_whole_numbers(format, Rounding::toward_zero, x))
                       ? 0
                       : 1;
          const double nearest = by_whole_numbers(format, Rounding::nearest_even, x);
          const double limited =
              std::abs(nearest) > format.largest ? std::copysign(kInfinity, x) : nearest;
          wrong += same(round_to(format, x), limited) ? 0 : 1;
        }
        CHECK(wrong == 0);
      }
    }
  }

  TEST_CASE("rounding is idempotent and odd and monotone") {
    std::mt19937_64 engine(2);
    for (const FloatFormat& format : listed_formats()) {
      CAPTURE(to_string(format));
      for (Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
        CAPTURE(name(rounding));
        Index wrong = 0;
        for (int repeat = 0; repeat < 5000; ++repeat) {
          const double x = repeat % 2 == 0 ? any_double(engine) : double_near(engine, format);
          const double y =
              repeat % 3 == 0 ? std::nextafter(x, kInfinity) : double_near(engine, format);
          const double rounded = round_to(format, rounding, x);
          const double other = round_to(format, rounding, y);
          wrong += same(round_to(format, rounding, rounded), rounded) ? 0 : 1;
          wrong += same(round_to(format, rounding, -x), -rounded) ? 0 : 1;
          wrong += (x <= y && rounded > other) || (x >= y && rounded < other) ? 1 : 0;
        }
        CHECK(wrong == 0);
      }
    }
  }

  TEST_CASE("fp64 keeps every double and NaN stays NaN in all formats") {
    std::mt19937_64 engine(3);
    for (int repeat = 0; repeat < 10000; ++repeat) {
      const double x = any_double(engine);
      if (!same(round_to(float_format(NumberFormat::fp64), x), x)) FAIL_CHECK(x);
    }
    for (const FloatFormat& format : listed_formats()) {
      CHECK(std::isnan(round_to(format, std::nan(""))));
    }
  }

  TEST_CASE("the tie above 448 goes to the even 448 and what is beyond overflows") {
    const FloatFormat nan = parse_float_format("format", "fp8e4m3/nan");
    CHECK(round_to(nan, 464) == 448);
    CHECK(std::isnan(round_to(nan, std::nextafter(464.0, 465.0))));
    CHECK(round_to(nan, Rounding::toward_zero, 1e300) == 448);
    CHECK(std::isnan(round_to(nan, Rounding::toward_zero, kInfinity)));
    CHECK(round_to(float_format(NumberFormat::fp8e4m3), -kInfinity) == -448);
    // IEEE: the tie above the odd largest number goes up.
    const FloatFormat fp16 = float_format(NumberFormat::fp16);
    CHECK(round_to(fp16, 65520) == kInfinity);
    CHECK(round_to(fp16, std::nextafter(65520.0, 0.0)) == 65504);
  }

  TEST_CASE("an ulp is the distance of neighbours and never less than that of subnormals") {
    for (const FloatFormat& format : listed_formats()) {
      CAPTURE(to_string(format));
      const std::vector<double> all = magnitudes(format);
      Index wrong = 0;
      for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        const double gap = all[i + 1] - all[i];
        const double last = std::nextafter(all[i + 1], 0.0);
        for (double x : {all[i], all[i] + gap / 2, last}) {
          wrong += ulp(format, x) == gap && ulp(format, -x) == gap ? 0 : 1;
        }
      }
      CHECK(wrong == 0);
    }
    CHECK(std::isnan(ulp(float_format(NumberFormat::fp16), kInfinity)));
    CHECK(ulp(float_format(NumberFormat::fp64), 0) == 0x1p-1074);
  }

  TEST_CASE("a format's text parses back and is its name where it has one") {
    for (const NumberFormatFacts& entry : kNumberFormats) {
      CHECK(to_string(float_format(entry.format)) == entry.name);
      CHECK(parse_float_format("dtype", entry.name) == float_format(entry.format));
    }
    for (int mantissa_bits = 1; mantissa_bits <= 52; ++mantissa_bits) {
      for (int exponent_bits = 2; exponent_bits <= 11; ++exponent_bits) {
        FloatFormat format = ieee_like(mantissa_bits, exponent_bits);
        for (bool subnormals : {true, false}) {
          for (Overflow overflow : {Overflow::infinity, Overflow::saturate, Overflow::nan}) {
            format.subnormals = subnormals;
            format.overflow = overflow;
            CHECK(parse_float_format("format", to_string(format)) == format);
          }
        }
      }
    }
    for (const char* text : {"m10", "m3e4", "fp8e4m3/nan/flush", "bf16/flush", "m9e5/saturate"}) {
      CHECK(to_string(parse_float_format("format", text)) == text);
    }
    CHECK(to_string(parse_float_format("format", "m7e8/flush/saturate")) == "bf16/saturate/flush");
  }

  TEST_CASE("a text that is no format is refused with field and value and what is allowed") {
    for (const char* text : {"",
                             "fp17",
                             "FP16",
                             "m",
                             "m0",
                             "m53",
                             "m03",
                             "m3e",
                             "m3e1",
                             "m3e12",
                             "m3e04",
                             "m3e4 ",
                             "m-3e4",
                             "m+3",
                             "m3x4",
                             "m99999999999",
                             "e4m3",
                             "fp16/",
                             "fp16//flush",
                             "fp16/clamp",
                             "fp16/flush/flush",
                             "fp16/nan/nan",
                             "fp16/saturate/infinity",
                             "/flush",
                             "m3e4e5"}) {
      const std::string message = rejection([&] { parse_float_format("--dtype", text); });
      CAPTURE(text);
      CHECK(contains(message, "--dtype = " + std::string(text) + ": must be fp64, "));
      CHECK(contains(message, "m1 to m52"));
      CHECK(contains(message, "/saturate"));
    }
    CHECK(rejection([] { ieee_like(0, 5); }) == "mantissa_bits = 0: must be from 1 to 52");
    CHECK(rejection([] { ieee_like(3, 12); }) == "exponent_bits = 12: must be from 2 to 11");
    CHECK(contains(rejection([] { to_string({.significand_bits = 4, .largest = 100}); }),
                   "float format = 4 significand bits"));
  }
}

}  // namespace flashbound
