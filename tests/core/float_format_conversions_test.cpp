// Rounding against conversions of others: Eigen's, the compiler's to float, and the processor's.
#include "core/float_format.hpp"
#include "core/int128.hpp"
#include "tests/core/float_format_oracle.hpp"

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace flashbound {
namespace {

using testing::same;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The finite magnitudes of a 16-bit format, decoded by Eigen, the pattern being the index.
template <class Half>
std::vector<double> decoded_magnitudes() {
  std::vector<double> all;
  for (std::uint32_t pattern = 0;; ++pattern) {
    const auto half = std::bit_cast<Half>(static_cast<std::uint16_t>(pattern));
    const double value = static_cast<double>(static_cast<float>(half));
    if (!std::isfinite(value)) return all;
    all.push_back(value);
  }
}

// Every number, every midpoint of neighbours (past the largest, too), and the floats next to them.
template <class Half>
std::vector<float> telling_floats() {
  std::vector<float> values{std::numeric_limits<float>::infinity(), 0.0F};
  const std::vector<double> all = decoded_magnitudes<Half>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double gap = i + 1 < all.size() ? all[i + 1] - all[i] : all[i] - all[i - 1];
    for (double x : {all[i], all[i] + gap / 2}) {
      const auto exact = static_cast<float>(x);
      for (float next : {exact, std::nextafter(exact, std::numeric_limits<float>::infinity()),
                         std::nextafter(exact, 0.0F)}) {
        values.push_back(next);
        values.push_back(-next);
      }
    }
  }
  return values;
}

template <class Convert>
Index disagreements(const FloatFormat& format, const std::vector<float>& values, Convert convert) {
  Index wrong = 0;
  for (float value : values) {
    if (same(round_to(format, static_cast<double>(value)), convert(value))) continue;
    if (++wrong == 1) MESSAGE(to_string(format), " disagrees at ", value);
  }
  return wrong;
}

template <class Half>
double by_eigen(float value) {
  return static_cast<double>(static_cast<float>(static_cast<Half>(value)));
}

// Neighbours in the list of patterns decide: a midpoint goes to the even pattern, the doubles
// next to it to the nearer number.
template <class Half>
void check_neighbours(const FloatFormat& format) {
  const std::vector<double> all = decoded_magnitudes<Half>();
  Index wrong = 0;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const double middle = (all[i] + all[i + 1]) / 2;
    const double even = i % 2 == 0 ? all[i] : all[i + 1];
    for (double sign : {1.0, -1.0}) {
      wrong += same(round_to(format, sign * all[i]), sign * all[i]) ? 0 : 1;
      wrong += same(round_to(format, sign * middle), sign * even) ? 0 : 1;
      const double below = sign * std::nextafter(middle, 0.0);
      const double above = sign * std::nextafter(middle, kInfinity);
      wrong += same(round_to(format, below), sign * all[i]) ? 0 : 1;
      wrong += same(round_to(format, above), sign * all[i + 1]) ? 0 : 1;
      for (double x : {below, sign * middle, above, sign * std::nextafter(all[i + 1], 0.0)}) {
        wrong += same(round_to(format, Rounding::toward_zero, x), sign * all[i]) ? 0 : 1;
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(all.size() == (format.significand_bits == 11 ? 0x7C00 : 0x7F80));
}

#if defined(__x86_64__)
// Clang 14 does not know "f16c" in __builtin_cpu_supports; AVX there tells of the system's support.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (ecx & bit_F16C) != 0 && __builtin_cpu_supports("avx") != 0;
}

__attribute__((target("f16c"))) double by_f16c(float value) {
  const __m128i half = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
  return static_cast<double>(_mm_cvtss_f32(_mm_cvtph_ps(half)));
}
__attribute__((target("f16c"))) double by_f16c_truncation(float value) {
  const __m128i half = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_ZERO);
  return static_cast<double>(_mm_cvtss_f32(_mm_cvtph_ps(half)));
}
#endif

}  // namespace

TEST_SUITE("core.float_format") {
  TEST_CASE("between all 16-bit patterns the nearer neighbour wins and ties go to even") {
    check_neighbours<Eigen::half>(float_format(NumberFormat::fp16));
    check_neighbours<Eigen::bfloat16>(float_format(NumberFormat::bf16));
  }

  TEST_CASE("fp16 and bf16 agree with Eigen at every number and midpoint") {
    CHECK(disagreements(float_format(NumberFormat::fp16), telling_floats<Eigen::half>(),
                        by_eigen<Eigen::half>) == 0);
    CHECK(disagreements(float_format(NumberFormat::bf16), telling_floats<Eigen::bfloat16>(),
                        by_eigen<Eigen::bfloat16>) == 0);
  }

  TEST_CASE("fp16 and bf16 agree with Eigen on random floats of any bits") {
    std::mt19937_64 engine(4);
    std::vector<float> values(300000);
    for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
    CHECK(disagreements(float_format(NumberFormat::fp16), values, by_eigen<Eigen::half>) == 0);
    CHECK(disagreements(float_format(NumberFormat::bf16), values, by_eigen<Eigen::bfloat16>) == 0);
  }

#if defined(__x86_64__)
  TEST_CASE("fp16 agrees with the processor's conversion to nearest and toward zero") {
    if (!has_f16c()) {
      MESSAGE("skipped: this processor has no F16C");
      return;
    }
    const FloatFormat fp16 = float_format(NumberFormat::fp16);
    const std::vector<float> values = telling_floats<Eigen::half>();
    CHECK(disagreements(fp16, values, by_f16c) == 0);
    Index wrong = 0;
    for (float value : values) {
      if (std::isinf(value)) continue;
      const double ours = round_to(fp16, Rounding::toward_zero, static_cast<double>(value));
      wrong += same(ours, by_f16c_truncation(value)) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
#endif

  TEST_CASE("fp32 agrees with the compiler's conversion of doubles") {
    const FloatFormat fp32 = float_format(NumberFormat::fp32);
    std::mt19937_64 engine(5);
    Index wrong = 0;
    const auto check = [&](double x) {
      wrong += same(round_to(fp32, x), static_cast<double>(static_cast<float>(x))) ? 0 : 1;
    };
    for (int repeat = 0; repeat < 300000; ++repeat) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
      const float next = std::nextafter(value, std::numeric_limits<float>::infinity());
      const double middle = (static_cast<double>(value) + static_cast<double>(next)) / 2;
      for (double x : {static_cast<double>(value), middle}) {
        for (double near : {x, std::nextafter(x, kInfinity), std::nextafter(x, -kInfinity)}) {
          check(near);
        }
      }
      check(std::bit_cast<double>(engine()));
    }
    const double largest = fp32.largest;
    const double overflowing = largest + ulp(fp32, largest) / 2;
    for (double x : {largest, overflowing, std::nextafter(overflowing, 0.0), kInfinity}) {
      check(x);
      check(-x);
    }
    CHECK(wrong == 0);
  }
}

}  // namespace flashbound
