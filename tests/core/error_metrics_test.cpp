#include "core/error_metrics.hpp"

#include "core/errors.hpp"
#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace flashbound {
namespace {

using testing::rejection;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
const FloatFormat kFp16 = float_format(NumberFormat::fp16);
const FloatFormat kFp64 = float_format(NumberFormat::fp64);

Index total(const UlpHistogram& histogram) {
  return std::accumulate(histogram.begin(), histogram.end(), Index{0});
}

// Of both signs, with any significand, at eleven exponents: normal numbers in every format used.
std::vector<double> spread_values(std::uint64_t seed, std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random_bits(seed, i);
    const double size = 1 + static_cast<double>(bits >> 12) * 0x1p-52;
    values.push_back(
        std::ldexp((bits & 1) != 0 ? size : -size, static_cast<int>(bits / 2 % 11) - 5));
  }
  return values;
}

}  // namespace

TEST_SUITE("core.error_metrics") {
  TEST_CASE("metrics of four pairs are those computed by hand") {
    const std::vector<double> exact{1, -2, 4, 0};
    const std::vector<double> computed{1.5, -2.25, 4, 0.25};
    const ErrorMetrics metrics = error_metrics(computed, exact, kFp16);
    CHECK(metrics.count == 4);
    CHECK(metrics.finite == 4);
    CHECK(metrics.max_abs == 0.5);
    CHECK(metrics.max_relative == 0.5);
    CHECK(metrics.rmse == std::sqrt((0.25 + 0.0625 + 0.0625) / 4));
    CHECK(metrics.max_ulp == 0.25 / 0x1p-24);  // at 0 an ulp is the smallest subnormal
    CHECK(metrics.signed_error.mean == 0.125);
    CHECK(metrics.signed_error.positive == 2);
    CHECK(metrics.signed_error.negative == 1);
    CHECK(metrics.signed_error.zero == 1);
    CHECK(metrics.magnitude_error.mean == 0.1875);
    CHECK(metrics.magnitude_error.positive == 2);
    CHECK(metrics.magnitude_error.negative == 0);
    CHECK(metrics.magnitude_error.zero == 2);
    CHECK(metrics.magnitude_error.sign_test_p == doctest::Approx(0.5));
  }

  TEST_CASE("equal values have no error and nothing to judge a bias by") {
    const std::vector<double> values = spread_values(1, 100);
    const ErrorMetrics metrics = error_metrics(values, values, kFp64);
    CHECK(metrics.max_abs == 0);
    CHECK(metrics.rmse == 0);
    CHECK(metrics.ulp_histogram[0] == 100);
    CHECK(metrics.signed_error.zero == 100);
    CHECK(metrics.signed_error.sign_test_p == 1);
    const ErrorMetrics none = error_metrics({}, {}, kFp64);
    CHECK(none.count == 0);
    CHECK(none.rmse == 0);
    CHECK(none.signed_error.mean == 0);
  }

  TEST_CASE("a histogram's bins are open below and closed above") {
    CHECK(ulp_bin(0) == 0);
    CHECK(ulp_bin(std::nextafter(0.0, 1.0)) == 1);
    CHECK(ulp_bin(kInfinity) == kUlpEdges.size() - 1);
    for (std::size_t bin = 1; bin + 1 < kUlpEdges.size(); ++bin) {
      CAPTURE(bin);
      CHECK(ulp_bin(kUlpEdges[bin]) == bin);
      CHECK(ulp_bin(std::nextafter(kUlpEdges[bin], 0.0)) == bin);
      CHECK(ulp_bin(std::nextafter(kUlpEdges[bin], kInfinity)) == bin + 1);
      if (bin > 1) CHECK(kUlpEdges[bin] == 2 * kUlpEdges[bin - 1]);
    }
    CHECK(ulp_bin_name(0) == "0");
    CHECK(ulp_bin_name(1) == "(0, 0.5]");
    CHECK(ulp_bin_name(2) == "(0.5, 1]");
    CHECK(ulp_bin_name(kUlpEdges.size() - 1) == "(65536, inf]");
  }

  TEST_CASE("errors of whole ulps fall into the bins of their number") {
    const double ulp_of_three = ulp(kFp16, 3.0);
    std::vector<double> computed;
    for (int ulps = 0; ulps <= 8; ++ulps) computed.push_back(3 + ulps * ulp_of_three);
    const std::vector<double> exact(computed.size(), 3.0);
    const ErrorMetrics metrics = error_metrics(computed, exact, kFp16);
    CHECK(metrics.ulp_histogram[0] == 1);           // 0
    CHECK(metrics.ulp_histogram[1] == 0);           // none at half an ulp
    CHECK(metrics.ulp_histogram[ulp_bin(1)] == 1);  // 1
    CHECK(metrics.ulp_histogram[ulp_bin(2)] == 1);  // 2
    CHECK(metrics.ulp_histogram[ulp_bin(4)] == 2);  // 3, 4
    CHECK(metrics.ulp_histogram[ulp_bin(8)] == 4);  // 5, 6, 7, 8
    CHECK(total(metrics.ulp_histogram) == metrics.finite);
    CHECK(metrics.max_ulp == 8);
  }

  TEST_CASE("rounding to nearest errs by half an ulp at most and truncation by less than one") {
    const std::vector<double> exact = spread_values(2, 20000);
    for (NumberFormat named : {NumberFormat::fp16, NumberFormat::bf16, NumberFormat::fp32}) {
      const FloatFormat format = float_format(named);
      CAPTURE(name(named));
      std::vector<double> nearest;
      std::vector<double> truncated;
      for (double x : exact) {
        nearest.push_back(round_to(format, x));
        truncated.push_back(round_to(format, Rounding::toward_zero, x));
      }
      const ErrorMetrics fair = error_metrics(nearest, exact, format);
      CHECK(fair.max_ulp <= 0.5);
      CHECK(fair.max_relative <= unit_roundoff(format));
      CHECK(total(fair.ulp_histogram) == fair.ulp_histogram[0] + fair.ulp_histogram[1]);
      CHECK(fair.signed_error.sign_test_p > 1e-6);
      CHECK(fair.magnitude_error.sign_test_p > 1e-6);
      // Truncation has no side, seen along the axis, yet always makes magnitudes smaller.
      const ErrorMetrics shrunk = error_metrics(truncated, exact, format);
      CHECK(shrunk.max_ulp < 1);
      CHECK(shrunk.signed_error.sign_test_p > 1e-6);
      CHECK(shrunk.magnitude_error.positive == 0);
      CHECK(shrunk.magnitude_error.sign_test_p < 1e-300);
      CHECK(shrunk.magnitude_error.mean < 0);
    }
  }

  TEST_CASE("values that are not finite agree or mismatch and leave the sizes alone") {
    const std::vector<double> computed{kNan, kNan, 1, kInfinity, kInfinity, -kInfinity, 2, kNan, 3};
    const std::vector<double> exact{kNan,       1,         kNan,      kInfinity, -kInfinity,
                                    -kInfinity, kInfinity, kInfinity, 3};
    const ErrorMetrics metrics = error_metrics(computed, exact, kFp16);
    CHECK(metrics.count == 9);
    CHECK(metrics.both_nan == 1);
    CHECK(metrics.same_infinity == 2);
    CHECK(metrics.nonfinite_mismatch == 5);
    CHECK(metrics.finite == 1);
    CHECK(metrics.max_abs == 0);
    CHECK(total(metrics.ulp_histogram) == 1);
  }

  TEST_CASE("negating both sides turns the signed error and keeps the magnitude error") {
    const std::vector<double> exact = spread_values(3, 1000);
    std::vector<double> computed;
    for (double x : exact) computed.push_back(round_to(kFp16, x * 1.0001));
    const ErrorMetrics metrics = error_metrics(computed, exact, kFp16);
    std::vector<double> negated_exact;
    std::vector<double> negated;
    for (double x : exact) negated_exact.push_back(-x);
    for (double x : computed) negated.push_back(-x);
    const ErrorMetrics mirrored = error_metrics(negated, negated_exact, kFp16);
    CHECK(mirrored.signed_error.mean == -metrics.signed_error.mean);
    CHECK(mirrored.signed_error.positive == metrics.signed_error.negative);
    CHECK(mirrored.magnitude_error.mean == metrics.magnitude_error.mean);
    CHECK(mirrored.magnitude_error.positive == metrics.magnitude_error.positive);
    CHECK(mirrored.rmse == metrics.rmse);
    CHECK(mirrored.ulp_histogram == metrics.ulp_histogram);
  }

  TEST_CASE("sums neither lose small terms nor overflow in squares") {
    // Naively the ones are lost next to 2^53 and the mean is 0.
    std::vector<double> computed{0x1p53};
    computed.insert(computed.end(), 1000, 1.0);
    computed.push_back(-0x1p53);
    const std::vector<double> zeros(computed.size(), 0.0);
    CHECK(error_metrics(computed, zeros, kFp64).signed_error.mean == 1000.0 / 1002);
    for (double size : {1e300, 1e-300}) {
      const std::vector<double> large{size, -size};
      const std::vector<double> two_zeros(2, 0.0);
      CHECK(error_metrics(large, two_zeros, kFp64).rmse == size);
    }
  }

  TEST_CASE("sides of different sizes are refused") {
    const std::vector<double> one(1);
    CHECK(rejection([&] { error_metrics(one, {}, kFp64); }) ==
          "computed values = 1: must be as many as exact ones (0)");
  }
}

}  // namespace flashbound
