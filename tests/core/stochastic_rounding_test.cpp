#include "core/float_format.hpp"
#include "core/int128.hpp"
#include "tests/core/float_format_oracle.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace flashbound {
namespace {

using testing::same;

// How many of the 2^k words whose leading k bits differ round x up in magnitude. Bits below the
// leading 32 must not matter, so they vary.
Index words_up(const FloatFormat& format, double x, int k) {
  Index up = 0;
  const double below = round_to(format, Rounding::toward_zero, x);
  for (std::uint64_t word = 0; word < std::uint64_t{1} << k; ++word) {
    const std::uint64_t random = (word << (64 - k)) | (random_bits(7, word) >> 32);
    const double rounded = round_to(format, Rounding::stochastic, x, random);
    if (same(rounded, below)) continue;
    CHECK(std::abs(rounded) == std::abs(below) + ulp(format, x));
    ++up;
  }
  return up;
}

}  // namespace

TEST_SUITE("core.stochastic_rounding") {
  TEST_CASE("of all random words exactly the share of the distance rounds away from zero") {
    constexpr int kBits = 10;
    constexpr Index kWords = Index{1} << kBits;
    for (const char* text : {"fp8e4m3", "bf16", "fp16", "m3e4", "m20", "fp32"}) {
      const FloatFormat format = parse_float_format("format", text);
      // In the normal range, among the subnormals and below the smallest positive number.
      const double normal = 1 + ulp(format, 1.0);
      for (double base : {normal, 3 * smallest_positive(format), 0.0}) {
        CAPTURE(text);
        CAPTURE(base);
        const double spacing = ulp(format, base);
        for (Index share = 0; share < kWords; share += 31) {
          const double x = base + spacing * static_cast<double>(share) / kWords;
          CHECK(words_up(format, x, kBits) == share);
          CHECK(words_up(format, -x, kBits) == share);
        }
      }
    }
  }

  // Far below the smallest positive number its share of 2^-32 is what remains, then nothing.
  TEST_CASE("shares are rounded down to steps of 2^-32") {
    const FloatFormat format = float_format(NumberFormat::fp8e4m3);
    const double smallest = smallest_positive(format);
    const auto ups = [&](double x) {
      const double first = round_to(format, Rounding::stochastic, x, 0);
      const double second = round_to(format, Rounding::stochastic, x, std::uint64_t{1} << 32);
      return (first > 0 ? 1 : 0) + (second > 0 ? 1 : 0);
    };
    CHECK(ups(smallest * 0x1p-31) == 2);
    CHECK(ups(std::nextafter(smallest * 0x1p-31, 0.0)) == 1);
    CHECK(ups(smallest * 0x1p-32) == 1);
    CHECK(ups(std::nextafter(smallest * 0x1p-32, 0.0)) == 0);
    CHECK(ups(1e-300) == 0);
    CHECK(ups(5e-324) == 0);
    const std::uint64_t all_ones = ~std::uint64_t{0};
    CHECK(round_to(format, Rounding::stochastic, std::nextafter(smallest, 0.0), all_ones) == 0);
  }

  TEST_CASE("numbers of the format stay whatever the random word") {
    for (const char* text : {"fp8e4m3", "fp8e5m2", "m3e4", "m1e2"}) {
      const FloatFormat format = parse_float_format("format", text);
      for (double x : testing::magnitudes(format)) {
        if (x > format.largest) continue;
        for (std::uint64_t random : {std::uint64_t{0}, ~std::uint64_t{0}, random_bits(1, 2)}) {
          CHECK(same(round_to(format, Rounding::stochastic, x, random), x));
          CHECK(same(round_to(format, Rounding::stochastic, -x, random), -x));
        }
      }
    }
  }

  TEST_CASE("beyond the largest number one step up overflows and one down does not") {
    const FloatFormat format = parse_float_format("format", "fp16");
    const double x = 65504 + 8;  // a quarter of the way to 65536
    CHECK(std::isinf(round_to(format, Rounding::stochastic, x, 0)));
    CHECK(round_to(format, Rounding::stochastic, x, std::uint64_t{1} << 62) == 65504);
    CHECK(std::isinf(round_to(format, Rounding::stochastic, 1e300, ~std::uint64_t{0})));
    const FloatFormat e4m3 = float_format(NumberFormat::fp8e4m3);
    CHECK(round_to(e4m3, Rounding::stochastic, 1e300, 0) == 448);
  }

  // Hoeffding: the mean of n results within a spacing s of each other is off its expectation by
  // more than s sqrt(log(2 / d) / (2 n)) with probability d at most; d = 2^-40. Steps of 2^-32
  // move the expectation by less than 2^-32 s.
  TEST_CASE("the mean of many roundings is the number rounded") {
    constexpr int kRepeats = 200000;
    const double deviation = std::sqrt(41 * std::log(2.0) / (2.0 * kRepeats)) + 0x1p-32;
    for (const char* text : {"fp8e4m3", "bf16", "fp16"}) {
      const FloatFormat format = parse_float_format("format", text);
      for (double x : {0.1, 1.0 / 3, -2.7182818, 1e-3, 100.7}) {
        CAPTURE(text);
        CAPTURE(x);
        double sum = 0;
        for (std::uint64_t i = 0; i < kRepeats; ++i) {
          sum += round_to(format, Rounding::stochastic, x, random_bits(11, i)) - x;
        }
        CHECK(std::abs(sum / kRepeats) <= deviation * ulp(format, x));
      }
    }
  }

  // Steele, Lea and Flood 2014; the first outputs of Vigna's splitmix64.c for the seed 1234567.
  TEST_CASE("random bits are SplitMix64's") {
    const std::uint64_t expected[] = {6457827717110365317U, 3203168211198807973U,
                                      9817491932198370423U, 4593380528125082431U,
                                      16408922859458223821U};
    for (std::uint64_t i = 0; i < 5; ++i) CHECK(random_bits(1234567, i) == expected[i]);
  }
}

}  // namespace flashbound
