// Where errors of the logits dominate the bound: long sums in q k, ties that rounding breaks, and
// logits so large that their rounding decides the weights.
#include "core/error_bound.hpp"
#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/attention_oracle.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/online_softmax.hpp"
#include "tests/core/within_bound.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

TEST_SUITE_BEGIN("core.error_bound");

namespace flashbound {
namespace {

using testing::kKeyByKey;
using testing::one_head;

// The first row of an online softmax in fp32 beside what it should be.
struct Fp32Row {
  double error;  // of the first column
  double bound;
  double lse_ratio;
};

Fp32Row fp32_row(const Problem& p, OwnedInputs inputs) {
  round_to_fp32(inputs);
  const Sequence at = sequence(p, 0);
  const ErrorBound bound =
      error_bound(head_conditions(p, inputs.view(), at, 0),
                  program_rounding(NumberFormat::fp32, schedule_for(p, kKeyByKey, at)));
  const testing::ExactAttention exact = testing::exact_attention(p, inputs.view());
  const auto online = testing::online_row<float>(p, inputs.view(), at, 0, 0);
  testing::WorstRatio lse;
  lse.add(online.lse, exact.lse.elements[0], bound.lse(0));
  return {std::abs(static_cast<double>(online.o[0] - exact.o.elements[0])), bound.o(0, 0),
          lse.worst()};
}

TEST_CASE("a long product q k loses what the bound allows for it and not much less") {
  // Equal terms: a growing sum rounds each addition the same way over long stretches.
  Problem p = one_head({1, 2, 576, 1});
  p.softmax_scale = 1.0 / 64;
  double tightest = 0;
  for (int numerator = 33; numerator < 64; ++numerator) {
    CAPTURE(numerator);
    OwnedInputs inputs = normal_inputs(p, 1);
    const double term = static_cast<double>(numerator) / 60;
    for (double& q : inputs.q.elements) q = term;
    for (Index c = 0; c < 576; ++c) {
      inputs.k.view()(0, 0, 0, c) = term;
      inputs.k.view()(0, 0, 1, c) = c < 288 ? term : 0;
    }
    inputs.v.elements = {1, -1};
    const Fp32Row row = fp32_row(p, inputs);
    REQUIRE(row.error <= row.bound);
    REQUIRE(row.lse_ratio <= 1);
    tightest = std::max(tightest, row.error / row.bound);
  }
  MESSAGE("largest error/bound " << tightest);
  // A bound a hundred times smaller would be wrong.
  CHECK(tightest > 0.01);
}

TEST_CASE("a tie that rounding breaks costs no more than the spread of the values") {
  // Two keys with equal exact logits, whose terms cancel in different orders.
  Problem p = one_head({1, 2, 3, 1});
  p.softmax_scale = 1e4;
  OwnedInputs inputs = normal_inputs(p, 1);
  inputs.q.elements = {1, 1, 1};
  inputs.k.elements = {0x1p24, 1,       -0x1p24,  // 2^24 + 1 rounds to 2^24 in fp32
                       0x1p24, -0x1p24, 1};
  inputs.v.elements = {3, 5};
  const Fp32Row row = fp32_row(p, inputs);
  CHECK(row.error == doctest::Approx(1));  // all weight on one key instead of half
  CHECK(row.bound >= 2);
  CHECK(row.bound <= 2.001);
  CHECK(row.lse_ratio <= 1);
}

TEST_CASE("one visible key has a small bound however large its logit") {
  for (const double logit : {1e4, 1e8, 1e30}) {
    CAPTURE(logit);
    Problem p = one_head({1, 1, 4, 1});
    p.softmax_scale = logit;
    OwnedInputs inputs = normal_inputs(p, 1);
    inputs.q.elements = {1, 1, 1, 1};
    inputs.k.elements = {1, 1, 1, 1};
    inputs.v.elements = {3};
    const Fp32Row row = fp32_row(p, inputs);
    CHECK(row.error <= row.bound);
    CHECK(row.bound < 1e-4);
    CHECK(row.lse_ratio <= 1);
  }
}

TEST_CASE("a value of any visible key joins the spread and that of a hidden key does not") {
  Problem p = one_head({2, 3, 1, 1});
  p.window_right = 0;  // the first query does not see the last key
  p.softmax_scale = 1e8;
  OwnedInputs inputs = normal_inputs(p, 1);
  inputs.q.elements = {1, 1};
  inputs.k.elements = {1, 1, 1};
  inputs.v.elements = {0, 1, 100};
  const ErrorBound bound =
      error_bound(head_conditions(p, inputs.view(), sequence(p, 0), 0),
                  program_rounding(NumberFormat::fp32, schedule_for(p, {}, sequence(p, 0))));
  CHECK(bound.o(0, 0) == doctest::Approx(1).epsilon(1e-3));
  CHECK(bound.o(1, 0) == doctest::Approx(100).epsilon(1e-3));
  p.sink = {0};  // a value of zero
  inputs.v.elements = {10, 11, 12};
  const ErrorBound with_sink =
      error_bound(head_conditions(p, inputs.view(), sequence(p, 0), 0),
                  program_rounding(NumberFormat::fp32, schedule_for(p, {}, sequence(p, 0))));
  CHECK(with_sink.o(0, 0) == doctest::Approx(11).epsilon(1e-3));
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
