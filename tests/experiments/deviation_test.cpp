#include "experiments/numerics/deviation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace flashbound {

TEST_SUITE("experiments.claims") {
  TEST_CASE("a deviation is the largest and the mean distance and the root of the mean square") {
    const Deviation d =
        deviation(std::vector<double>{1, 2, -3, 4}, std::vector<double>{1, 5, 1, 4});
    CHECK(d.max_abs == 4);
    CHECK(d.mean_abs == 1.75);
    CHECK(d.rmse == 2.5);
  }

  TEST_CASE("an output that is not finite has no deviation") {
    for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      CHECK_THROWS_AS(deviation(std::vector<double>{bad}, std::vector<double>{1}),
                      std::runtime_error);
    }
  }

  TEST_CASE("a median is the middle value or the mean of the two in the middle") {
    CHECK(median({3, 1, 2}) == 2);
    CHECK(median({4, 1, 3, 2}) == 2.5);
    CHECK(median({7}) == 7);
  }

  TEST_CASE("rank correlation sees order alone") {
    CHECK(spearman({1, 2, 3, 4}, {1, 10, 100, 1e9}) == 1);
    CHECK(spearman({1, 2, 3, 4}, {5, 4, 3, -1e9}) == -1);
    CHECK(spearman({1, 2, 3}, {2, 2, 2}) == 0);
    // Ranks 1, 2, 3, 4 against 1.5, 1.5, 3, 4: covariance 4.5 over the root of 5 times 4.5.
    CHECK(spearman({1, 2, 3, 4}, {6, 6, 7, 8}) == doctest::Approx(4.5 / std::sqrt(22.5)));
  }

  TEST_CASE("the fp64 recipe deviates from the reference by rounding errors alone") {
    const FloatFormat bf16 = float_format(NumberFormat::bf16);
    const HeadCase head = head_case("normal", 8, 100, 16, bf16, 1);
    CHECK(head.inputs.q.shape == std::array<Index, 4>{1, 1, 8, 16});
    CHECK(head.inputs.k.shape == std::array<Index, 4>{1, 1, 100, 16});
    for (const double x : head.inputs.k.elements) CHECK(round_to(bf16, x) == x);
    const std::vector<double> o =
        numeric_output("flash2", recipe_named("fp64"), head.problem, {4, 32}, head.inputs.view());
    CHECK(deviation(o, head.exact).max_abs < 1e-14);
  }

  TEST_CASE("fewer queries than the inputs have are their first ones") {
    const FloatFormat fp64 = float_format(NumberFormat::fp64);
    const HeadCase head = head_case("normal", 8, 20, 4, fp64, 1);
    Problem few = head.problem;
    few.seqlen_q = 3;
    const std::vector<double> o = reference_output(few, head.inputs.view());
    CHECK(o == std::vector<double>(head.exact.begin(), head.exact.begin() + 12));
  }
}

}  // namespace flashbound
