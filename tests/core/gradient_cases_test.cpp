// The reference on the failure cases of gradient_cases.hpp.
#include "tests/core/gradient_cases.hpp"

#include "core/gradients.hpp"
#include "tests/core/gradient_check.hpp"
#include "tests/core/one_head.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace flashbound {
namespace {

struct Computed {
  testing::GradientOperands operands;
  Gradients gradients;
};

Computed compute(const testing::GradientCase& of) {
  Computed result{testing::operands_of(of), {}};
  const Tensor<double>& grad_o = result.operands.grad_o;
  result.gradients = reference_gradients(of.problem, result.operands.inputs.view(), grad_o.view());
  return result;
}

// Rows [first, last) of every head: all exactly zero, or none of them so.
bool all_zero(const Tensor<double>& tensor, Index first, Index last) {
  for (Index h = 0; h < tensor.shape[1]; ++h) {
    for (Index r = first; r < last; ++r) {
      for (Index c = 0; c < tensor.shape[3]; ++c) {
        if (tensor.view()(0, h, r, c) != 0) return false;
      }
    }
  }
  return true;
}

const testing::GradientCase& case_named(const std::vector<testing::GradientCase>& cases,
                                        const std::string& id) {
  for (const testing::GradientCase& one : cases) {
    if (id == one.id) return one;
  }
  FAIL("no such case");
  return cases.front();
}

}  // namespace

TEST_SUITE("core.gradient_cases") {
  TEST_CASE("A5 A11 A12 A13 A20 A26 A27 A29 A34: gradients = the definition and are finite") {
    for (const testing::GradientCase& one : testing::gradient_cases()) {
      const std::string id = one.id;
      CAPTURE(id);
      validate(one.problem);
      const Computed computed = compute(one);
      const Tensor<double>& grad_o = computed.operands.grad_o;
      CHECK(testing::reference_share(one.problem, computed.operands.inputs.view(), grad_o.view()) <=
            1);
      for (const Tensor<double>* gradient :
           {&computed.gradients.q, &computed.gradients.k, &computed.gradients.v}) {
        for (const double value : gradient->elements) CHECK_UNARY(std::isfinite(value));
      }
    }
  }

  TEST_CASE("A11: packed queries that see no key have gradients of exactly 0") {
    const auto cases = testing::gradient_cases();
    const Computed computed = compute(case_named(cases, "A11"));
    // Each sequence has one key, which only its last query sees.
    CHECK(all_zero(computed.gradients.q, 0, 75));
    CHECK(all_zero(computed.gradients.q, 76, 109));
    CHECK(all_zero(computed.gradients.q, 110, 255));
    CHECK(!all_zero(computed.gradients.v, 0, 1));
  }

  TEST_CASE("A13 A20: keys of sequences without queries have gradients of exactly 0") {
    const auto cases = testing::gradient_cases();
    const Computed first = compute(case_named(cases, "A13"));
    CHECK(all_zero(first.gradients.k, 0, 1));
    CHECK(all_zero(first.gradients.v, 0, 1));
    CHECK(!all_zero(first.gradients.k, 1, 2));
    const Computed second = compute(case_named(cases, "A20"));
    CHECK(all_zero(second.gradients.k, 0, 40));
    CHECK(all_zero(second.gradients.v, 0, 40));
    CHECK(all_zero(second.gradients.k, 80, 128));
    CHECK(all_zero(second.gradients.v, 80, 128));
    CHECK(!all_zero(second.gradients.k, 40, 41));
    CHECK(!all_zero(second.gradients.v, 79, 80));
  }

  TEST_CASE("A27: the last of 15000 batches has the gradients that it has alone") {
    const auto cases = testing::gradient_cases();
    const testing::GradientCase& many = case_named(cases, "A27");
    const Computed whole = compute(many);
    Problem one = many.problem;
    one.batch = 1;
    const auto last = [](const Tensor<double>& tensor) {
      Tensor<double> result({1, tensor.shape[1], tensor.shape[2], tensor.shape[3]});
      const auto size = static_cast<std::ptrdiff_t>(result.elements.size());
      result.elements.assign(tensor.elements.end() - size, tensor.elements.end());
      return result;
    };
    const OwnedInputs& in = whole.operands.inputs;
    const OwnedInputs inputs{last(in.q), last(in.k), last(in.v)};
    const Tensor<double> grad_o = last(whole.operands.grad_o);
    const Gradients alone = reference_gradients(one, inputs.view(), grad_o.view());
    CHECK(alone.q.elements == last(whole.gradients.q).elements);
    CHECK(alone.k.elements == last(whole.gradients.k).elements);
    CHECK(alone.v.elements == last(whole.gradients.v).elements);
  }

  TEST_CASE("A34: without a causal mask the first query gives gradients to the last key") {
    const auto cases = testing::gradient_cases();
    testing::GradientCase open = case_named(cases, "A34");
    const auto last_key_from_first_query = [](const testing::GradientCase& one) {
      testing::GradientOperands operands = testing::operands_of(one);
      for (Index r = 1; r < one.problem.seqlen_q; ++r) {
        for (Index c = 0; c < one.problem.head_dim_v; ++c) operands.grad_o.view()(0, 0, r, c) = 0;
      }
      const Tensor<double>& grad_o = operands.grad_o;
      const Gradients gradients =
          reference_gradients(one.problem, operands.inputs.view(), grad_o.view());
      return !all_zero(gradients.v, 64, 65) && !all_zero(gradients.k, 64, 65);
    };
    CHECK(last_key_from_first_query(open));
    open.problem.window_right = 0;
    CHECK(!last_key_from_first_query(open));
  }
}

}  // namespace flashbound
