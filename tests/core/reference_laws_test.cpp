// Laws of attention that need no oracle: what changes of the inputs leave alone, and by how much.
#include "core/error_bound.hpp"
#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/within_bound.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

TEST_SUITE_BEGIN("core.reference");

namespace flashbound {
namespace {

using testing::one_head;
using testing::WorstRatio;

struct Run {
  HeadOutput output;
  ErrorBound bound;
};

Run run(const Problem& p, const OwnedInputs& inputs) {
  const Sequence at = sequence(p, 0);
  return {reference_head(p, inputs.view(), at, 0),
          error_bound(head_conditions(p, inputs.view(), at, 0), reference_rounding())};
}

// Outputs that are exactly equal in exact arithmetic, lse up to a shift.
void check_equal(const Run& a, const Run& b, double lse_shift = 0) {
  WorstRatio ratio;
  for (Index r = 0; r < a.output.o.rows(); ++r) {
    for (Index c = 0; c < a.output.o.cols(); ++c) {
      ratio.add(a.output.o(r, c), b.output.o(r, c), a.bound.o(r, c) + b.bound.o(r, c));
    }
    ratio.add(a.output.lse(r) + lse_shift, b.output.lse(r), a.bound.lse(r) + b.bound.lse(r));
  }
  CHECK(ratio.count() > 0);
  CHECK(ratio.worst() <= 1);
}

double& at(Tensor<double>& tensor, Index row, Index col) { return tensor.view()(0, 0, row, col); }

TEST_CASE("permuting keys with their values changes nothing") {
  const Problem p = one_head({4, 40, 6, 3});
  const OwnedInputs inputs = normal_inputs(p, 1);
  OwnedInputs permuted = inputs;
  for (Index j = 0; j < p.seqlen_kv; ++j) {
    const Index from = (j * 7 + 3) % p.seqlen_kv;
    for (Index c = 0; c < p.head_dim; ++c) at(permuted.k, j, c) = inputs.k.view()(0, 0, from, c);
    for (Index c = 0; c < p.head_dim_v; ++c) at(permuted.v, j, c) = inputs.v.view()(0, 0, from, c);
  }
  check_equal(run(p, inputs), run(p, permuted));
}

TEST_CASE("a constant added to every logit moves lse alone") {
  // One more column that is constant over the keys shifts every logit of a query alike.
  Problem p = one_head({4, 40, 6, 3});
  p.softmax_scale = 1;
  for (const double shift : {-700.0, -3.0, 5.0, 1000.0}) {
    CAPTURE(shift);
    OwnedInputs inputs = normal_inputs(p, 2);
    for (Index i = 0; i < p.seqlen_q; ++i) at(inputs.q, i, 5) = 0;
    for (Index j = 0; j < p.seqlen_kv; ++j) at(inputs.k, j, 5) = 1;
    const Run before = run(p, inputs);
    for (Index i = 0; i < p.seqlen_q; ++i) at(inputs.q, i, 5) = shift;
    check_equal(before, run(p, inputs), shift);
  }
}

TEST_CASE("output is linear in the values and lse does not depend on them") {
  const Problem p = one_head({4, 30, 5, 3});
  const OwnedInputs inputs = normal_inputs(p, 3);
  OwnedInputs doubled = inputs;
  for (double& v : doubled.v.elements) v *= 2;
  const Run once = run(p, inputs);
  const Run twice = run(p, doubled);
  CHECK(twice.output.o == 2 * once.output.o);  // a power of two rounds nothing
  CHECK(twice.output.lse == once.output.lse);
}

TEST_CASE("a negative scale equals negated queries") {
  Problem p = one_head({4, 30, 5, 3});
  p.softmax_scale = -0.7;
  OwnedInputs inputs = normal_inputs(p, 4);
  const Run negative = run(p, inputs);
  for (double& q : inputs.q.elements) q = -q;
  p.softmax_scale = 0.7;
  check_equal(negative, run(p, inputs));
}

TEST_CASE("a sink equals one more key with that logit and a value of zero") {
  Problem with_sink = one_head({4, 30, 5, 3});
  with_sink.softmax_scale = 1;
  with_sink.sink = {1.25};
  Problem with_key = with_sink;
  with_key.sink.clear();
  with_key.seqlen_kv += 1;
  OwnedInputs inputs = normal_inputs(with_key, 5);
  for (Index i = 0; i < 4; ++i) at(inputs.q, i, 0) = 1;
  for (Index c = 0; c < 5; ++c) at(inputs.k, 30, c) = c == 0 ? 1.25 : 0;
  for (Index c = 0; c < 3; ++c) at(inputs.v, 30, c) = 0;
  const Run key = run(with_key, inputs);
  inputs.k.shape[2] = inputs.v.shape[2] = 30;  // the last key is the last row of memory
  check_equal(run(with_sink, inputs), key);
}

TEST_CASE("a softcap far above the logits approaches none") {
  Problem p = one_head({4, 30, 5, 3});
  const OwnedInputs inputs = normal_inputs(p, 6);
  const Run none = run(p, inputs);
  // c tanh(x/c) = x - x^3/(3 c^2) + ..., under 1e-17 here.
  p.softcap = 1e10;
  check_equal(none, run(p, inputs));
}

TEST_CASE("a NaN reaches exactly the rows that see it") {
  Problem p = one_head({6, 8, 3, 2});
  p.window_left = 3;
  p.window_right = 1;
  const OwnedInputs clean = normal_inputs(p, 7);
  const Run before = run(p, clean);
  const Schedule schedule = schedule_for(p, {}, sequence(p, 0));
  for (Index key = 0; key < p.seqlen_kv; ++key) {
    for (const bool in_key : {true, false}) {
      CAPTURE(key);
      CAPTURE(in_key);
      OwnedInputs inputs = clean;
      at(in_key ? inputs.k : inputs.v, key, 1) = std::numeric_limits<double>::quiet_NaN();
      const HeadOutput actual = run(p, inputs).output;
      for (Index i = 0; i < p.seqlen_q; ++i) {
        const bool reached = schedule.visible(i, key);
        CHECK(std::isnan(actual.o(i, 1)) == reached);
        CHECK(std::isnan(actual.o(i, 0)) == (reached && in_key));
        CHECK(std::isnan(actual.lse(i)) == (reached && in_key));
        // A row's own rounding may differ: sums take another path beside a NaN.
        const auto allowed = 2 * before.bound.o.row(i).array();
        const auto change = (actual.o.row(i) - before.output.o.row(i)).array().abs();
        if (!reached) CHECK((change <= allowed).all());
      }
    }
  }
}

TEST_CASE("infinite values that are hidden do not leak either") {
  Problem p = one_head({3, 3, 2, 1});
  p.window_right = 0;
  OwnedInputs inputs = normal_inputs(p, 8);
  at(inputs.v, 2, 0) = std::numeric_limits<double>::infinity();
  at(inputs.k, 2, 0) = std::numeric_limits<double>::infinity();
  const HeadOutput output = run(p, inputs).output;
  CHECK(output.o.topRows(2).allFinite());
  CHECK(output.lse.head(2).allFinite());
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
