// Results on a boundary between two doubles, or so near that 128 bits do not show the side.
#include "core/exact.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/attention_cases.hpp"
#include "tests/core/one_head.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

TEST_SUITE_BEGIN("core.exact");

namespace flashbound {
namespace {

using testing::one_head;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUlp = 0x1p-52;

// One query of 1 and scale 1, so that keys are logits; one column.
struct Row {
  Problem problem;
  OwnedInputs inputs;
};
Row row_of(const std::vector<double>& logits, const std::vector<double>& values) {
  Row row{one_head({1, static_cast<Index>(logits.size()), 1, 1}), {}};
  row.problem.softmax_scale = 1;
  row.inputs = normal_inputs(row.problem, 1);
  row.inputs.q.elements = {1};
  row.inputs.k.elements = logits;
  row.inputs.v.elements = values;
  return row;
}
ExactAttention result_of(const Row& row, const ExactOptions& options = {}) {
  return exact(row.problem, row.inputs.view(), options);
}
double o_of(const Row& row) { return result_of(row).o.elements[0]; }
double lse_of(const Row& row) { return result_of(row).lse.elements[0]; }

TEST_CASE("a mean half way between two doubles goes to the even one") {
  CHECK(o_of(row_of({3, 3}, {1, 1 + kUlp})) == 1);
  CHECK(o_of(row_of({3, 3}, {1 + kUlp, 1 + 2 * kUlp})) == 1 + 2 * kUlp);
  CHECK(o_of(row_of({3, 3}, {-1, -1 - kUlp})) == -1);
  CHECK(o_of(row_of({0.1, 0.1}, {1, 1 + kUlp})) == 1);
  // Where no boundary is: a third, twice.
  CHECK(o_of(row_of({3, 3, 3}, {1, 1, 1 + kUlp})) == 1);
  CHECK(o_of(row_of({3, 3, 3}, {1, 1 + kUlp, 1 + kUlp})) == 1 + kUlp);
}

TEST_CASE("a key far below decides what would be a tie") {
  for (const double gap : {50.0, 5000.0, 1e6, 1e300}) {
    CAPTURE(gap);
    CHECK(o_of(row_of({0, 0, -gap}, {1, 1 + kUlp, 2})) == 1 + kUlp);
    CHECK(o_of(row_of({0, 0, -gap}, {1, 1 + kUlp, 0})) == 1);
    CHECK(o_of(row_of({0, 0, -gap}, {1 + kUlp, 1 + 2 * kUlp, 0})) == 1 + kUlp);
    // Half way itself: no help.
    CHECK(o_of(row_of({0, 0, -gap, -gap}, {1, 1 + kUlp, 1, 1 + kUlp})) == 1);
  }
}

TEST_CASE("values that cancel give zero or what lies far below") {
  CHECK(o_of(row_of({7, 7}, {1, -1})) == 0);
  CHECK_FALSE(std::signbit(o_of(row_of({7, 7}, {1, -1}))));
  CHECK(o_of(row_of({7, 7, -1e300}, {1, -1, 5})) == 0);
  const double small = o_of(row_of({0, 0, -600}, {1, -1, 1}));
  CHECK(small == doctest::Approx(std::exp(-600.0) / 2).epsilon(1e-12));
  CHECK(o_of(row_of({0, 0, -5000}, {1, -1, 1})) == 0);  // underflows
}

TEST_CASE("results at the ends of the doubles round as IEEE has it") {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  CHECK(o_of(row_of({0, 0}, {tiny, 0})) == 0);
  CHECK(o_of(row_of({0, 0}, {tiny, 2 * tiny})) == 2 * tiny);
  CHECK(o_of(row_of({0, 0, -2000}, {tiny, 0, 1})) == tiny);
  CHECK(o_of(row_of({0, 0, -2000}, {tiny, 0, -1})) == 0);
  CHECK(o_of(row_of({0, 0}, {huge, huge})) == huge);
  CHECK(lse_of(row_of({huge, huge}, {0, 0})) == huge);
  CHECK(o_of(row_of({huge, -huge}, {3, 4})) == 3);
}

TEST_CASE("lse of one key is its logit rounded once") {
  Problem p = one_head({1, 1, 2, 1});
  p.softmax_scale = 1;
  OwnedInputs inputs = normal_inputs(p, 1);
  const auto lse = [&](double a, double b) {
    inputs.q.elements = {1, 1};
    inputs.k.elements = {a, b};
    return exact(p, inputs.view()).lse.elements[0];
  };
  CHECK(lse(1, kUlp / 2) == 1);
  CHECK(lse(1 + kUlp, kUlp / 2) == 1 + 2 * kUlp);
  CHECK(lse(1, -1) == 0);
}

TEST_CASE("lse beside a boundary is decided by keys far below") {
  Problem p = one_head({1, 2, 2, 1});
  p.softmax_scale = 1;
  OwnedInputs inputs = normal_inputs(p, 1);
  inputs.q.elements = {1, 1};
  for (const double gap : {100.0, 4000.0, 1e6}) {
    CAPTURE(gap);
    inputs.k.elements = {1, kUlp / 2, 1 - gap, 0};
    CHECK(exact(p, inputs.view()).lse.elements[0] == 1 + kUlp);
  }
  // A logit of 0 and another: a number that underflows, and one that does not.
  CHECK(lse_of(row_of({0, -5000}, {1, 1})) == 0);
  CHECK(lse_of(row_of({0, -1e6}, {1, 1})) == 0);
  CHECK(lse_of(row_of({0, -700}, {1, 1})) == doctest::Approx(std::exp(-700.0)).epsilon(1e-12));
}

TEST_CASE("a sink is a key without a value") {
  Row row = row_of({2, 2}, {2, 2 + 2 * kUlp});
  row.problem.sink = {2};
  CHECK(o_of(row) == doctest::Approx(4.0 / 3));
  row = row_of({2, 2, 2}, {1, 1, 2 + 4 * kUlp});
  row.problem.sink = {2};
  CHECK(o_of(row) == 1 + kUlp);
  row = row_of({2, 2, 2}, {1, 1, 2 + 2 * kUlp});  // 1 + ulp / 2
  row.problem.sink = {2};
  CHECK(o_of(row) == 1);
  row.problem.sink = {-1e5};
  CHECK(result_of(row).precision == 128);
  row = row_of({2, 2}, {1, 1 + kUlp});
  row.problem.sink = {-1e5};
  CHECK(o_of(row) == 1);  // a little below half way
  row = row_of({2, 2}, {1 + kUlp, 1 + 2 * kUlp});
  row.problem.sink = {-1e5};
  CHECK(o_of(row) == 1 + kUlp);
}

TEST_CASE("ties among equal logits are found under a softcap and ALiBi") {
  Row row = row_of({3, 3}, {1, 1 + kUlp});
  row.problem.softcap = 5;
  CHECK(o_of(row) == 1);
  row = row_of({0, 3, 3}, {1, 1, 1 + kUlp});
  row.problem.softcap = 5;
  CHECK(result_of(row).undecided_o.empty());
  // Distances 1 and 0: the logits differ by the slope, which the keys make up for.
  row = row_of({3, 2.5}, {1, 1 + kUlp});
  row.problem.alibi_slopes = {0.5};
  CHECK(o_of(row) == 1);
}

// Logits of 1 and 1 + 2^-bits: a mean so near to half way takes more bits than that.
Row near_half_way(int bits) {
  Row row = row_of({0, 0}, {1 + kUlp, 1});
  row.problem.head_dim = 2;
  row.inputs = normal_inputs(row.problem, 1);
  row.inputs.q.elements = {1, 1};
  row.inputs.k.elements = {1, std::ldexp(1.0, -bits), 1, 0};
  row.inputs.v.elements = {1 + kUlp, 1};
  return row;
}

TEST_CASE("hard cases take more precision and easy ones do not") {
  CHECK(result_of(row_of({0, 1}, {1, 2})).precision == 128);
  CHECK(result_of(near_half_way(100)).precision == 128);
  CHECK(result_of(near_half_way(200)).precision == 256);
  CHECK(result_of(near_half_way(400)).precision == 512);
  for (const int bits : {100, 200, 400, 1000}) {
    CAPTURE(bits);
    Row row = near_half_way(bits);
    CHECK(o_of(row) == 1 + kUlp);
    std::swap(row.inputs.v.elements[0], row.inputs.v.elements[1]);
    CHECK(o_of(row) == 1);
  }
}

TEST_CASE("what the cap leaves in doubt is reported and not guessed") {
  const Row row = near_half_way(400);
  const ExactAttention capped = result_of(row, {.first_precision = 128, .precision_cap = 300});
  CHECK(capped.undecided_o == std::vector<Index>{0});
  CHECK(std::isnan(capped.o.elements[0]));
  CHECK(capped.undecided_lse.empty());
  CHECK(capped.precision == 300);
}

TEST_CASE("a number that is not finite reaches its row or its column alone") {
  const double nan = std::nan("");
  CHECK(std::isnan(o_of(row_of({nan, 1}, {1, 2}))));
  CHECK(std::isnan(lse_of(row_of({nan, 1}, {1, 2}))));
  CHECK(std::isnan(o_of(row_of({kInfinity, 1}, {1, 2}))));
  CHECK(std::isnan(lse_of(row_of({kInfinity, 1}, {1, 2}))));
  CHECK(o_of(row_of({-kInfinity, 1}, {1, 2})) == 2);
  CHECK(lse_of(row_of({-kInfinity, 1}, {1, 2})) == 1);
  CHECK(std::isnan(o_of(row_of({-kInfinity, 1}, {nan, 2}))));
  CHECK(o_of(row_of({-kInfinity, -kInfinity}, {1, 2})) == 0);
  CHECK(lse_of(row_of({-kInfinity, -kInfinity}, {1, 2})) == -kInfinity);
  CHECK(o_of(row_of({0, 1}, {kInfinity, 2})) == kInfinity);
  CHECK(std::isnan(o_of(row_of({0, 1}, {kInfinity, -kInfinity}))));
  CHECK(lse_of(row_of({0, 0}, {nan, 2})) == std::log(2.0));
  Row capped = row_of({kInfinity, -kInfinity}, {1, 0});
  capped.problem.softcap = 2;
  CHECK(o_of(capped) == doctest::Approx(1 / (1 + std::exp(-4.0))));
}

TEST_CASE("a masked NaN reaches nobody") {
  Problem p = one_head({2, 2, 1, 1});
  p.window_right = 0;
  OwnedInputs inputs = normal_inputs(p, 3);
  inputs.k.elements[1] = std::nan("");
  inputs.v.elements[1] = std::nan("");
  const ExactAttention result = exact(p, inputs.view());
  CHECK(result.o.elements[0] == inputs.v.elements[0]);
  CHECK(std::isfinite(result.lse.elements[0]));
  CHECK(std::isnan(result.o.elements[1]));
  CHECK(std::isnan(result.lse.elements[1]));
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
