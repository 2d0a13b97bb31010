// A hidden pair gives nothing back, whatever stands in its place.
#include "core/numeric_gradient_operations.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace flashbound {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// Two queries, two keys, causal: only query 0 and key 1 do not see each other.
constexpr Schedule kCausal{{2, 2, 1, 1}, {.window_right = 0}, {}};
constexpr numeric::ScoreRegion kWhole{{0, 2}, {0, 2}};

numeric::Matrix<double> matrix(double a, double b, double c, double d) {
  numeric::Matrix<double> result(2, 2);
  result << a, b, c, d;
  return result;
}

numeric::Matrix<double> column(double a, double b) {
  numeric::Matrix<double> result(2, 1);
  result << a, b;
  return result;
}

}  // namespace

TEST_SUITE("core.numeric") {
  TEST_CASE("a masked NaN is no gradient of a logit") {
    numeric::Matrix<double> gradients = matrix(3, kNaN, 5, 7);
    numeric::softmax_gradient(gradients, matrix(1, kNaN, 0.5, 0.25), column(2, 1), kCausal, kWhole);
    CHECK(gradients == matrix(1, 0, 2, 1.5));
  }

  TEST_CASE("a masked NaN is no gradient of a score with a softcap or without") {
    const numeric::Matrix<double> k = column(0, kNaN);
    numeric::Matrix<double> gradients = matrix(3, kNaN, 5, kNaN);
    numeric::logits_gradient<double>(gradients, nullptr, nullptr, {.scale = 2}, kCausal, kWhole);
    CHECK(gradients(0, 0) == 6);
    CHECK(gradients(0, 1) == 0);
    CHECK(gradients(1, 0) == 10);
    gradients = matrix(3, 1, 5, 1);
    const numeric::Matrix<double> q = column(1, 1);
    numeric::logits_gradient<double>(gradients, &q, &k, {.scale = 2, .softcap = 10}, kCausal,
                                     kWhole);
    CHECK(gradients(0, 0) == 6);  // tanh 0 has slope 1
    CHECK(gradients(0, 1) == 0);
  }

  TEST_CASE("a masked pair adds nothing to sums over keys or queries") {
    numeric::Matrix<double> sum = column(0, 0);
    numeric::row_dot_visible(sum, matrix(1, 0, 2, 3), matrix(4, kNaN, 5, 6), kCausal, kWhole);
    CHECK(sum == column(4, 28));
    sum = column(0, 0);
    numeric::multiply_left_transposed(sum, matrix(1, kNaN, 2, 3), column(4, 5), kCausal, kWhole);
    CHECK(sum == column(14, 15));
  }
}

}  // namespace flashbound
