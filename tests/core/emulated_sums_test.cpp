// Sums as tensor cores and trees add them, against exact sums.
#include "core/emulated_sums.hpp"

#include "tests/core/exact_number.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace flashbound {
namespace {

struct Terms {
  double accumulated = 0;
  std::vector<double> terms;
};

// Terms of 22 bits with gaps of up to `gap` binades, signs that cancel, zeros and repeats.
Terms random_terms(std::mt19937_64& engine, int gap, int centre) {
  const auto below = [&](int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); };
  const auto number = [&] {
    const double significand = static_cast<double>(engine() >> 42) - 0x1p21;
    return std::ldexp(significand, centre - 22 - below(gap + 1));
  };
  Terms result{number(), {}};
  const int n = 1 + below(below(6) == 0 ? 40 : 16);
  for (int k = 0; k < n; ++k) {
    const int what = below(8);
    const double before = result.terms.empty() ? result.accumulated : result.terms.back();
    result.terms.push_back(what == 0 ? 0 : what <= 2 ? -before : number());
  }
  if (below(4) == 0) result.accumulated = 0;
  return result;
}

FloatFormat format(const char* text) { return parse_float_format("format", text); }

double sum_of(const Terms& t, int bits, const FloatFormat& to) {
  return aligned_sum(t.accumulated, t.terms.data(), static_cast<Index>(t.terms.size()), bits, to);
}

void check(const Terms& t, int bits, const FloatFormat& to) {
  const double got = sum_of(t, bits, to);
  const double expected = testing::aligned_once(t.accumulated, t.terms, bits, to);
  if (got == expected) return;
  CAPTURE(bits);
  CAPTURE(to_string(to));
  CAPTURE(t.accumulated);
  CAPTURE(t.terms.size());
  CAPTURE(got);
  CAPTURE(expected);
  FAIL_CHECK("an aligned sum differs from its definition");
}

template <class T>
numeric::Matrix<T> random_matrix(std::mt19937_64& engine, Index rows, Index cols) {
  numeric::Matrix<T> m(rows, cols);
  for (T& x : m.reshaped()) x = static_cast<T>(static_cast<double>(engine() >> 53) - 1023.0);
  return m;
}

// A rounder of `to` for operands of up to 24 bits.
template <class T>
ProductArithmetic<T> arithmetic(SumOrder order, const FloatFormat& to, bool rounds_products,
                                RandomStream& stream) {
  const Rounder<T> rounder(to, Rounding::nearest_even, {24, -149}, stream);
  Accumulation how{.sum = to, .order = order};
  ProductArithmetic<T> result{how, std::nullopt, rounder};
  if (rounds_products) {
    result.how.product = to;
    result.product = rounder;
  }
  return result;
}

}  // namespace

TEST_SUITE("core.emulated_sums") {
  TEST_CASE("aligned sums are those of their definition") {
    std::mt19937_64 engine(1);
    for (const char* to : {"fp32", "fp16", "bf16", "fp64", "m13e8", "m40"}) {
      for (const int bits : {2, 3, 11, 14, 24, 25, 26, 27, 40, 48}) {
        for (const int gap : {0, 3, 30, 120}) {
          for (int at = 0; at < 120; ++at) check(random_terms(engine, gap, 4), bits, format(to));
        }
      }
    }
  }

  TEST_CASE("aligned sums at the ends of the range of doubles") {
    std::mt19937_64 engine(2);
    for (const char* to : {"fp64", "m23", "m10/flush"}) {
      for (const int bits : {2, 14, 25, 48}) {
        for (const int centre : {-1060, -1022, -990, -900, -899, 900, 1000}) {
          for (int at = 0; at < 300; ++at) {
            check(random_terms(engine, 20, centre), bits, format(to));
          }
        }
      }
    }
  }

  TEST_CASE("many terms of all bits are added exactly before they are cut") {
    // 1024 terms of 48 bits need 58, which no double has.
    std::mt19937_64 engine(3);
    for (int at = 0; at < 200; ++at) {
      Terms t;
      for (int k = 0; k < 1024; ++k) {
        t.terms.push_back(static_cast<double>((engine() >> 16) | std::uint64_t{1} << 47));
      }
      check(t, 48, format("fp64"));
      check(t, 48, format("m51"));
    }
  }

  TEST_CASE("results that leave fp16 become its largest number and its subnormals") {
    const FloatFormat fp16 = format("fp16");
    CHECK(sum_of({60000, {60000}}, 25, fp16) == 65504);
    CHECK(sum_of({-60000, {-60000}}, 25, fp16) == -65504);
    CHECK(sum_of({0x1p-24, {0x1.8p-24}}, 25, fp16) == 0x1p-23);
    CHECK(sum_of({0, {0x1.8p-25}}, 25, fp16) == 0);
  }

  TEST_CASE("zeros infinities and NaN are those of a plain sum") {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const FloatFormat fp32 = format("fp32");
    CHECK(sum_of({0, {0, 0}}, 25, fp32) == 0);
    CHECK(sum_of({1, {}}, 25, fp32) == 1);
    CHECK(sum_of({1, {kInfinity}}, 25, fp32) == kInfinity);
    CHECK(sum_of({-kInfinity, {3}}, 25, fp32) == -kInfinity);
    CHECK(std::isnan(sum_of({kInfinity, {-kInfinity}}, 25, fp32)));
    CHECK(std::isnan(sum_of({1, {kNan, 2}}, 25, fp32)));
    CHECK(std::isnan(sum_of({kNan, {1, 2}}, 25, fp32)));
  }

  TEST_CASE("published facts of tensor cores hold") {
    // Fasi, Higham, Mikaitis and Pranesh 2021, sections 3 and 4: of V100 (24 bits, 4 terms) and
    // A100 (25 bits, 8 terms), all in fp32.
    const FloatFormat fp32 = format("fp32");
    const double u = 0x1p-24;
    // Additions start with the largest: small terms are lost one by one on V100 ...
    CHECK(sum_of({1, {u, u, u, u}}, 24, fp32) == 1);
    // ... and one extra bit keeps them on A100.
    CHECK(sum_of({1, {u, u, u, u}}, 25, fp32) == 1 + 4 * u);
    // Rounded toward zero in both signs.
    CHECK(sum_of({1, {u}}, 25, fp32) == 1);
    CHECK(sum_of({-1, {-u}}, 25, fp32) == -1);
    CHECK(sum_of({2, {3 * u}}, 26, fp32) == 2);
    // Not monotone: a larger accumulator gives a smaller sum.
    const double below_one = 1 - u;
    CHECK(sum_of({below_one, {u, u, u, u}}, 24, fp32) > sum_of({1, {u, u, u, u}}, 24, fp32));
    // No normalisation in between: the carry of 1 + 1 costs no bit of what follows.
    CHECK(sum_of({1, {1, 2 * u, 2 * u}}, 24, fp32) == 2 + 4 * u);
  }

  TEST_CASE("pairwise sums are balanced trees added to what was there") {
    RandomStream stream;
    std::mt19937_64 engine(5);
    const FloatFormat bf16 = format("bf16");
    const auto plus = [&](double x, double y) { return round_to(bf16, x + y); };
    for (int at = 0; at < 200; ++at) {
      const numeric::Matrix<double> a = random_matrix<double>(engine, 1, 7);
      const numeric::Matrix<double> b = random_matrix<double>(engine, 7, 1);
      numeric::Matrix<double> sum = numeric::Matrix<double>::Constant(1, 1, 3);
      const auto t = [&](Index k) { return round_to(bf16, a(0, k) * b(k, 0)); };
      // 7 = 3 + 4 = (1 + 2) + (2 + 2)
      const double expected =
          plus(3, plus(plus(t(0), plus(t(1), t(2))), plus(plus(t(3), t(4)), plus(t(5), t(6)))));
      accumulate_products(sum, a, b, arithmetic<double>(SumOrder::pairwise, bf16, true, stream));
      CHECK(sum(0, 0) == expected);
    }
  }

  TEST_CASE("every order adds the same where nothing is rounded") {
    RandomStream stream;
    std::mt19937_64 engine(6);
    const numeric::Matrix<double> a = random_matrix<double>(engine, 5, 37);
    const numeric::Matrix<double> b = random_matrix<double>(engine, 37, 9);
    const numeric::Matrix<double> exact = a * b;  // integers below 2^26
    for (const SumOrder order : {SumOrder::sequential, SumOrder::pairwise, SumOrder::tensor_core}) {
      for (const bool rounds_products : {false, true}) {
        numeric::Matrix<double> sum = numeric::Matrix<double>::Zero(5, 9);
        auto how = arithmetic<double>(order, format("m40"), rounds_products, stream);
        how.how.alignment_bits = 48;
        accumulate_products(sum, a, b, how);
        CHECK((sum.array() == exact.array()).all());
      }
    }
  }

  TEST_CASE("no bit depends on the rows and columns computed together") {
    RandomStream stream;
    std::mt19937_64 engine(7);
    const numeric::Matrix<float> a = random_matrix<float>(engine, 6, 21);
    const numeric::Matrix<float> b = random_matrix<float>(engine, 21, 33);
    for (const SumOrder order : {SumOrder::sequential, SumOrder::pairwise, SumOrder::tensor_core}) {
      const auto how = arithmetic<float>(order, format("fp32"), false, stream);
      numeric::Matrix<float> whole = numeric::Matrix<float>::Ones(6, 33);
      accumulate_products(whole, a, b, how);
      for (Index r = 0; r < 6; ++r) {
        for (Index c = 0; c < 33; ++c) {
          numeric::Matrix<float> one = numeric::Matrix<float>::Ones(1, 1);
          accumulate_products<float>(one, a.row(r), b.col(c), how);
          CHECK(one(0, 0) == whole(r, c));
        }
      }
    }
  }
}

}  // namespace flashbound
