// Rounding to the fp8 formats against CUDA's conversions, in their version for the host.
#include "core/float_format.hpp"
#include "core/int128.hpp"
#include "tests/core/float_format_oracle.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cuda_fp8.h>
#include <random>
#include <string>
#include <utility>

namespace flashbound {
namespace {

using testing::same;

struct Fp8 {
  const char* text;
  __nv_saturation_t saturation;
  __nv_fp8_interpretation_t interpretation;
};

constexpr Fp8 kFormats[] = {
    {"fp8e4m3", __NV_SATFINITE, __NV_E4M3},
    {"fp8e4m3/nan", __NV_NOSAT, __NV_E4M3},
    {"fp8e5m2/saturate", __NV_SATFINITE, __NV_E5M2},
    {"fp8e5m2", __NV_NOSAT, __NV_E5M2},
};

// Every fp8 is an fp16; its bits are decoded here, since CUDA's own decoding is the device's.
double decoded(const Fp8& fp8, __nv_fp8_storage_t storage) {
  const unsigned bits = __nv_cvt_fp8_to_halfraw(storage, fp8.interpretation).x;
  const int exponent = static_cast<int>(bits >> 10 & 0x1F);
  const int fraction = static_cast<int>(bits & 0x3FF);
  double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 0x400, exponent - 25);
  if (exponent == 0x1F) value = fraction == 0 ? HUGE_VAL : std::nan("");
  return (bits & 0x8000) != 0 ? -value : value;
}

Index disagreements(const Fp8& fp8, const std::vector<double>& values) {
  const FloatFormat format = parse_float_format("format", fp8.text);
  Index wrong = 0;
  for (double x : values) {
    const auto theirs = decoded(fp8, __nv_cvt_double_to_fp8(x, fp8.saturation, fp8.interpretation));
    if (same(round_to(format, x), theirs)) continue;
    if (++wrong <= 3) MESSAGE(fp8.text, ": ", x, " -> ", round_to(format, x), ", CUDA: ", theirs);
  }
  return wrong;
}

}  // namespace

TEST_SUITE("cuda.fp8_conversions") {
  TEST_CASE("fp8 agrees with CUDA at every number and midpoint and next to them") {
    for (const Fp8& fp8 : kFormats) {
      const FloatFormat format = parse_float_format("format", fp8.text);
      CHECK(disagreements(fp8, testing::telling_values(testing::magnitudes(format))) == 0);
    }
  }

  TEST_CASE("fp8 agrees with CUDA on all fp16 numbers") {
    std::vector<double> values = testing::magnitudes(float_format(NumberFormat::fp16));
    const std::size_t positive = values.size();
    for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
    for (const Fp8& fp8 : kFormats) CHECK(disagreements(fp8, values) == 0);
  }

  TEST_CASE("fp8 agrees with CUDA on random doubles") {
    std::mt19937_64 engine(1);
    std::vector<double> values;
    for (int repeat = 0; repeat < 100000; ++repeat) {
      values.push_back(std::bit_cast<double>(engine()));
      const double significand = 1 + static_cast<double>(engine() >> 12) * 0x1p-52;
      values.push_back(std::ldexp(significand, static_cast<int>(engine() % 40) - 20));
    }
    for (const Fp8& fp8 : kFormats) CHECK(disagreements(fp8, values) == 0);
  }
}

}  // namespace flashbound
