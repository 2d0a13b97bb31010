// The exponentials against Arb at 300 bits or more, whose midpoints round as the exact values do.
#include "core/exponential.hpp"

#include "core/emulated_arithmetic.hpp"
#include "tests/core/exact_number.hpp"
#include "tests/core/float_format_oracle.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
enum class Base { e, two };

double oracle(const FloatFormat& format, Rounding rounding, Base base, double x) {
  return testing::rounded_once(format, rounding,
                               base == Base::two ? testing::exact_exp2(x) : testing::exact_exp(x));
}

double rounded(const FloatFormat& format, Rounding rounding, Base base, double x) {
  return base == Base::e ? exp_rounded(format, rounding, x) : exp2_rounded(format, rounding, x);
}

FloatFormat format(const std::string& text) { return parse_float_format("format", text); }

void check(const FloatFormat& to, double x) {
  for (const Base base : {Base::e, Base::two}) {
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
      const double got = rounded(to, rounding, base, x);
      const double expected = oracle(to, rounding, base, x);
      if (testing::same(got, expected)) continue;
      CAPTURE(to_string(to));
      CAPTURE(std::string(name(rounding)));
      CAPTURE((base == Base::e));
      CAPTURE(x);
      CAPTURE(got);
      CAPTURE(expected);
      FAIL_CHECK("an exponential is not rounded once");
    }
  }
}

// What exponentiate() makes of scores under a row maximum of 0.
template <class T>
void check_weights(const Recipe& recipe, const std::vector<double>& scores) {
  using Matrix = numeric::Matrix<T>;
  EmulatedArithmetic<T> arithmetic(recipe, 0);
  const auto n = static_cast<Index>(scores.size());
  Matrix s(n, 1);
  for (Index at = 0; at < n; ++at) {
    s(at, 0) = static_cast<T>(round_to(recipe.scores, scores[static_cast<std::size_t>(at)]));
  }
  const Matrix before = s;
  arithmetic.exponentiate({s, TileRole::score}, Matrix::Zero(n, 1));
  for (Index at = 0; at < n; ++at) {
    const auto x = static_cast<double>(before(at, 0));
    const double expected = x == -kInfinity ? 0 : exp_rounded(recipe.scores, recipe.rounding, x);
    if (testing::same(static_cast<double>(s(at, 0)), expected)) continue;
    CAPTURE(recipe.name);
    CAPTURE(x);
    FAIL_CHECK("a weight differs from its certified rounding");
  }
}

std::vector<double> all_numbers(const FloatFormat& format) {
  std::vector<double> all;
  for (const double x : testing::magnitudes(format)) {
    if (x <= format.largest) all.insert(all.end(), {x, -x});
  }
  return all;
}

}  // namespace

TEST_SUITE("core.exponential") {
  TEST_CASE("every fp16 number to fp16 and bf16") {
    for (const double x : all_numbers(format("fp16"))) {
      check(format("fp16"), x);
      check(format("bf16"), x);
    }
  }

  TEST_CASE("every bf16 number within range to bf16") {
    for (const double x : all_numbers(format("bf16"))) {
      if (std::abs(x) < 1000) check(format("bf16"), x);
    }
  }

  TEST_CASE("random numbers to fp32") {
    std::mt19937_64 engine(1);
    const FloatFormat fp32 = format("fp32");
    for (int at = 0; at < 100'000; ++at) {
      const double part = static_cast<double>(engine() >> 11) * 0x1p-53;
      const double x = at % 3 == 0 ? -part * std::ldexp(1.0, -(at % 40)) : -160 * part + 10;
      check(fp32, round_to(fp32, x));
    }
  }

  TEST_CASE("random numbers to formats of many bits") {
    std::mt19937_64 engine(2);
    for (const char* to : {"m30", "m50", "m51", "m51e8", "m52e8", "fp64", "m50e5/flush"}) {
      for (int at = 0; at < 3000; ++at) {
        const double part = static_cast<double>(engine() >> 11) * 0x1p-53;
        check(format(to), at % 2 == 0 ? -800 * part : 3 * part - 2);
        check(format(to), -1100 * part);
      }
    }
  }

  TEST_CASE("hard cases") {
    // Next to a tie, or to a number: e^x = 1 + x + x^2 / 2; and the worst case of fp64 (Lefevre and
    // Muller 2001).
    for (const std::string to : {"fp16", "bf16", "fp32", "m30", "m50", "m51", "fp64", "m52e5"}) {
      const FloatFormat target = format(to);
      const double u = unit_roundoff(target);
      for (const double x : {u, -u, 3 * u, u / 2, -u / 2, 0x1.9e9cbbfd6080bp-31, 0x1p-60, -0x1p-60,
                             0x1p-300, -0x1p-300, 0x1p-1074, -0x1p-1074, 0x1p-1022, u - u * u / 2,
                             u + u * u, 3 * u - 4 * u * u, 3 * u - 5 * u * u}) {
        check(target, x);
      }
    }
  }

  TEST_CASE("zero whole powers of two and the ends of the range") {
    for (const std::string to : {"fp16", "bf16", "fp32", "m23", "m51", "fp64", "fp8e4m3"}) {
      const FloatFormat target = format(to);
      for (int k = -1100; k <= 1030; ++k) check(target, k);
      for (const double x : {0.0, 709.78, 709.7827128933840, 709.8, 88.72283, 88.7228317, 11.0898,
                             -745.13, -745.1332191019411, -745.1332191019412, -745.2, -103.97,
                             -744.5, -708.4, -17.33, -1074.5, -1075.5, -1022.5}) {
        check(target, x);
      }
      CHECK(exp_rounded(target, Rounding::nearest_even, 0) == 1);
      CHECK(exp_rounded(target, Rounding::nearest_even, -kInfinity) == 0);
      CHECK(exp2_rounded(target, Rounding::toward_zero, -kInfinity) == 0);
      CHECK(exp_rounded(target, Rounding::toward_zero, 1e6) == target.largest);
      CHECK(testing::same(exp_rounded(target, Rounding::nearest_even, kInfinity),
                          testing::overflow_of(target)));
      CHECK(std::isnan(exp_rounded(target, Rounding::nearest_even, kNan)));
      CHECK(std::isnan(exp2_rounded(target, Rounding::toward_zero, kNan)));
    }
  }

  TEST_CASE("the quick path of weights agrees with the certified one") {
    for (const NumberFormat f : {NumberFormat::fp16, NumberFormat::bf16}) {
      Recipe recipe = uniform_recipe(f);
      check_weights<float>(recipe, all_numbers(recipe.scores));
      check_weights<double>(recipe, all_numbers(recipe.scores));
      recipe.rounding = Rounding::toward_zero;
      check_weights<double>(recipe, all_numbers(recipe.scores));
    }
    std::vector<double> scores{0, -0.0, -kInfinity, kNan, 800, -800, -745.1332191019412};
    std::mt19937_64 engine(3);
    for (int at = 0; at < 20'000; ++at) {
      scores.push_back(-static_cast<double>(engine() >> 11) * (at % 2 == 0 ? 0x1p-44 : 0x1p-80));
    }
    for (const char* to : {"m23", "m40", "m51", "m52"}) {
      Recipe recipe = uniform_recipe(to, format(to));
      check_weights<double>(recipe, scores);
      recipe.rounding = Rounding::toward_zero;
      check_weights<double>(recipe, scores);
    }
  }

  TEST_CASE("weights times a power of two are rounded once") {
    // In fp16 e^-14 is subnormal; 2^8 e^-14 is not.
    Recipe recipe = uniform_recipe(NumberFormat::fp16);
    recipe.weight_offset_log2 = 8;
    EmulatedArithmetic<double> arithmetic(recipe, 0);
    for (double x = 0; x > -30; x -= 0x1p-5) {
      numeric::Matrix<double> s = numeric::Matrix<double>::Constant(1, 1, x);
      const numeric::Matrix<double> row_max = numeric::Matrix<double>::Zero(1, 1);
      arithmetic.exponentiate({s, TileRole::score}, row_max);
      CAPTURE(x);
      CHECK(s(0, 0) == round_to(recipe.scores, std::ldexp(std::exp(x), 8)));
    }
  }
}

}  // namespace flashbound
