// Every operation of Rounder gives what rounding the exact result once gives.
#include "core/rounder.hpp"

#include "tests/core/exact_number.hpp"
#include "tests/core/float_format_oracle.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace flashbound {
namespace {

using testing::Exact;
using Engine = std::mt19937_64;

// Operands of `format` that provoke double rounding: few bits set, neighbours of powers of two,
// midpoints of narrower formats, subnormals, and plain random ones; exponents near 0 or anywhere.
double telling_operand(Engine& engine, const FloatFormat& format) {
  const int p = format.significand_bits;
  const auto below = [&](int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); };
  const double significand = [&] {
    const std::uint64_t one = std::uint64_t{1} << (p - 1);
    switch (below(5)) {
      case 0: return static_cast<double>(one | one >> below(p) | one >> below(p));
      case 1: return static_cast<double>(2 * one - 1 - static_cast<std::uint64_t>(below(4)) % one);
      case 2: return static_cast<double>(one + static_cast<std::uint64_t>(below(4)) % one);
      case 3: return static_cast<double>(one | (engine() % one) >> below(p));
      default: return static_cast<double>(one | engine() % one);
    }
  }();
  const int emax = std::ilogb(format.largest);
  const int emin = format.exponent_min;
  int exponent = below(2 * p + 6) - p - 3;
  if (below(3) == 0) exponent = emin + below(2 * p + 4) - p;
  if (below(5) == 0) exponent = emin + below(emax - emin + 1);
  if (below(12) == 0) exponent = emax - below(3);
  exponent = std::clamp(exponent, emin - p, emax);
  const double x = std::ldexp(std::min(significand, std::ldexp(2.0, p - 1) - 1), exponent - p + 1);
  return round_to(format, Rounding::toward_zero, below(2) == 0 ? x : -x);
}

OperandRange range_of(const std::vector<FloatFormat>& formats) {
  OperandRange range{0, 0};
  for (const FloatFormat& f : formats) {
    range.bits = std::max(range.bits, f.significand_bits);
    range.lowest = std::min(range.lowest, f.exponent_min - f.significand_bits + 1);
  }
  return range;
}

struct Case {
  FloatFormat target;
  std::vector<FloatFormat> operands;
};

FloatFormat format(const char* text) { return parse_float_format("format", text); }

void report(const std::string& operation, const Case& c, const std::vector<double>& operands,
            double got, double expected) {
  // The sign of zero is left to the carrier's operation.
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return;
  CAPTURE(to_string(c.target));
  CAPTURE(operation);
  const double a = operands[0];
  const double b = operands[1];
  const double third = operands[2];
  CAPTURE(a);
  CAPTURE(b);
  CAPTURE(third);
  CAPTURE(got);
  CAPTURE(expected);
  FAIL_CHECK("an operation is not rounded once");
}

template <class T>
void check_operations(const Case& c, Rounding rounding, int count) {
  RandomStream stream;
  const Rounder<T> rounder(c.target, rounding, range_of(c.operands), stream);
  Engine engine(static_cast<std::uint64_t>(c.target.significand_bits));
  const auto operand = [&] {
    return static_cast<T>(telling_operand(engine, c.operands[engine() % c.operands.size()]));
  };
  for (int at = 0; at < count; ++at) {
    const T a = operand();
    const T b = operand();
    const T third = operand();
    const Exact x(static_cast<double>(a));
    const Exact y(static_cast<double>(b));
    const Exact z(static_cast<double>(third));
    const auto check = [&](const char* operation, T got, const Exact& exact) {
      report(operation, c,
             {static_cast<double>(a), static_cast<double>(b), static_cast<double>(third)},
             static_cast<double>(got), testing::rounded_once(c.target, rounding, exact));
    };
    check("add", rounder.add(a, b), x + y);
    check("multiply", rounder.multiply(a, b), x * y);
    if (b != 0) check("divide", rounder.divide(a, b), x / y);
    check("multiply_add", rounder.multiply_add(a, b, third), x * y + z);
  }
}

template <class T>
void check_cases(const std::vector<Case>& cases, int count) {
  for (const Case& c : cases) {
    CAPTURE(to_string(c.target));
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
      check_operations<T>(c, rounding, count);
    }
  }
}

}  // namespace

TEST_SUITE("core.rounder") {
  TEST_CASE("operands of the format itself in double for every p") {
    std::vector<Case> cases;
    for (int p = 2; p <= 53; ++p) {
      for (const int exponent_bits : {5, 8, 11}) {
        const FloatFormat own = ieee_like(p - 1, exponent_bits);
        cases.push_back({own, {own}});
      }
    }
    check_cases<double>(cases, 1500);
  }

  TEST_CASE("operands of any width in double") {
    const std::vector<FloatFormat> all{format("fp16"), format("bf16"), format("tf32"),
                                       format("fp32"), format("m51"),  format("fp8e4m3")};
    std::vector<Case> cases;
    for (const char* text :
         {"fp16",       "bf16", "tf32",          "fp32",       "fp8e4m3",  "fp8e5m2",      "m10",
          "m24",        "m25",  "m24e8",         "m50",        "m51",      "m51e8",        "m52e8",
          "fp16/flush", "fp64", "fp64/saturate", "fp64/flush", "fp16/nan", "bf16/saturate"}) {
      cases.push_back({format(text), all});
      cases.push_back({format(text), {format("fp64")}});
      cases.push_back({format(text), {format("fp32"), format("fp16")}});
    }
    check_cases<double>(cases, 6000);
  }

  TEST_CASE("float carries every format of up to 11 bits") {
    std::vector<Case> cases{{format("fp32"), {format("fp32"), format("bf16")}}};
    for (int p = 2; p <= 11; ++p) {
      for (const int exponent_bits : {4, 5, 8}) {
        const FloatFormat own = ieee_like(p - 1, exponent_bits);
        cases.push_back({own, {own}});
        cases.push_back({own, {own, format("bf16")}});
        cases.push_back({own, {format("fp32")}});
      }
    }
    check_cases<float>(cases, 3000);
  }

  TEST_CASE("a tie and a rest of another width are not rounded twice") {
    // 1 + 2^-11 is a tie of fp16; tf32 has numbers far smaller than its last place in double.
    RandomStream stream;
    const Rounder<double> fp16(format("fp16"), Rounding::nearest_even,
                               range_of({format("fp32"), format("fp16")}), stream);
    CHECK(fp16.add(1 + 0x1p-11, 0x1p-100) == 1 + 0x1p-10);
    CHECK(fp16.add(1 + 0x1p-11, -0x1p-100) == 1);
    const Rounder<double> p52(format("m51"), Rounding::nearest_even, range_of({format("m51")}),
                              stream);
    CHECK(p52.multiply_add(0x1p-60, 0x1p-60, 1 + 0x1p-51) == 1 + 0x1p-51);
    CHECK(p52.add(1, 0x1p-52 + 0x1p-53) == 1 + 0x1p-51);
    CHECK(p52.add(1, 0x1p-52 - 0x1p-60) == 1);
  }

  TEST_CASE("fp64 toward zero is the lower neighbour of what rounding to nearest raised") {
    RandomStream stream;
    const Rounder<double> fp64(format("fp64"), Rounding::toward_zero, range_of({format("fp64")}),
                               stream);
    CHECK(fp64.add(1, -0x1p-80) == 1 - 0x1p-53);
    CHECK(fp64.add(1, 0x1p-80) == 1);
    CHECK(fp64.divide(2, 3) == 0x1.5555555555555p-1);
    CHECK(fp64.add(0x1.fffffffffffffp1023, 0x1p1023) == 0x1.fffffffffffffp1023);
  }

  TEST_CASE("a product of zero keeps the sign of its factors") {
    RandomStream stream;
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
      for (const char* text : {"fp16", "m30", "fp64"}) {
        const Rounder<double> rounder(format(text), rounding, range_of({format("m30")}), stream);
        CHECK(std::signbit(rounder.multiply(-1.0, 0.0)));
        CHECK_FALSE(std::signbit(rounder.multiply(-1.0, -0.0)));
      }
    }
  }

  TEST_CASE("stochastic rounding of operations has no bias") {
    // The mean of n draws of two values a spacing u apart deviates by more than 5 sigma, sigma at
    // most u / (2 sqrt n), less than once in a million seeds.
    RandomStream stream{7, 0};
    constexpr int kDraws = 20'000;
    for (const char* text : {"bf16", "fp32", "m51", "fp64"}) {
      CAPTURE(text);
      const FloatFormat target = format(text);
      const Rounder<double> rounder(target, Rounding::stochastic, range_of({target}), stream);
      const double u = ulp(target, 1);
      for (const double part : {0.0, 0.1, 0.5, 0.7}) {
        double mean = 0;
        for (int draw = 0; draw < kDraws; ++draw) mean += (rounder.add(1, part * u) - 1) / u;
        mean /= kDraws;
        CAPTURE(part);
        CHECK(std::abs(mean - part) <= 5 / (2 * std::sqrt(double{kDraws})));
        if (part == 0) CHECK(mean == 0);
      }
    }
  }
}

}  // namespace flashbound
