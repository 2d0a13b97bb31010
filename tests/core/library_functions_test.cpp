// The errors of exp, log and tanh that the bound takes for granted, measured in fp32 against fp64.
// fp64 itself is sampled against extended precision.
#include "core/error_bound.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

TEST_SUITE_BEGIN("core.error_bound");

namespace flashbound {
namespace {

// Largest relative error in units of u, over every `step`-th fp32 number from low to high.
template <class F>
double worst_fp32(float low, float high, std::uint32_t step, const F& f) {
  double worst = 0;
  const auto last = std::bit_cast<std::uint32_t>(high);
  for (auto bits = std::bit_cast<std::uint32_t>(low); bits <= last; bits += step) {
    const auto x = std::bit_cast<float>(bits);
    const double exact = f(static_cast<double>(x));
    if (exact == 0) continue;
    worst = std::max(worst, std::abs((static_cast<double>(f(x)) - exact) / exact) * 0x1p24);
  }
  return worst;
}

template <class F>
double worst_fp64(double low, double high, const F& f) {
  std::mt19937_64 engine(1);
  double worst = 0;
  for (int sample = 0; sample < 200'000; ++sample) {
    const double x = low + (high - low) * (static_cast<double>(engine() >> 11U) * 0x1p-53);
    const long double exact = f(static_cast<long double>(x));
    if (exact == 0) continue;
    worst = std::max(worst, static_cast<double>(std::abs((f(x) - exact) / exact) * 0x1p53L));
  }
  return worst;
}

TEST_CASE("library functions err by less than the bound takes for granted") {
  const RoundingModel model = reference_rounding();
  const auto in_roundoffs = [&](double error) { return error / model.scores.unit_roundoff; };
  const auto exponential = [](auto x) { return std::exp(-x); };
  const auto logarithm = [](auto x) { return std::log(x); };
  const auto tangent = [](auto x) { return std::tanh(x); };
  CHECK(worst_fp32(1e-6F, 87.0F, 101, exponential) <= in_roundoffs(model.weight_error));
  CHECK(worst_fp32(1.0F, 1e6F, 101, logarithm) <= in_roundoffs(model.log_error));
  CHECK(worst_fp32(1e-5F, 10.0F, 101, tangent) <= in_roundoffs(model.tanh_error));
  CHECK(worst_fp64(0, 700, exponential) <= in_roundoffs(model.weight_error));
  CHECK(worst_fp64(1, 1e6, logarithm) <= in_roundoffs(model.log_error));
  CHECK(worst_fp64(0, 10, tangent) <= in_roundoffs(model.tanh_error));
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
