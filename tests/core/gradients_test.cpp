// Reference gradients against the definition in extended precision, on random problems.
#include "core/gradients.hpp"

#include "core/errors.hpp"
#include "core/exact.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/gradient_check.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 1200;

using testing::Grid;

// All parts from the last to the first.
void backwards(Index count, const std::function<void(Index)>& body) {
  for (Index part = count; part-- > 0;) body(part);
}

bool same_bits(const Tensor<double>& a, const Tensor<double>& b) {
  return a.shape == b.shape && a.elements == b.elements;
}

}  // namespace

TEST_SUITE("core.gradients") {
  TEST_CASE("reference gradients = the definition on random problems") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const std::string what = testing::describe(random);
      CAPTURE(seed);
      CAPTURE(what);
      const OwnedInputs inputs = normal_inputs(random.problem, seed);
      const Tensor<double> grad_o = testing::normal_grad_o(random.problem, seed);
      CHECK(testing::reference_share(random.problem, inputs.view(), grad_o.view()) <= 1);
    }
  }

  // Exact gradients share nothing with the definition in extended precision but the problem.
  TEST_CASE("exact gradients = the definition within the bound of fp64 on random problems") {
    Index undecided = 0;
    for (std::uint64_t seed = 0; seed < kCases / 6; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const OwnedInputs inputs = normal_inputs(random.problem, seed);
      const Tensor<double> grad_o = testing::normal_grad_o(random.problem, seed);
      const ExactGradients exact =
          exact_gradients(random.problem, inputs.view(), grad_o.view(), {.precision_cap = 1024});
      CAPTURE(seed);
      undecided += static_cast<Index>(exact.undecided_q.size() + exact.undecided_k.size() +
                                      exact.undecided_v.size());
      CHECK(testing::gradients_share(random.problem, inputs.view(), grad_o.view(),
                                     exact.gradients) <= 1);
    }
    CHECK(undecided == 0);
  }

  TEST_CASE("a NaN in any operand reaches exactly the gradients that see it") {
    for (std::uint64_t seed = 0; seed < kCases / 3; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      OwnedInputs inputs = normal_inputs(random.problem, seed);
      Tensor<double> owned = testing::normal_grad_o(random.problem, seed);
      Tensor<double>* const operands[] = {&inputs.q, &inputs.k, &inputs.v, &owned};
      std::vector<double>& elements = operands[seed % 4]->elements;
      elements[static_cast<std::size_t>(std::mt19937_64(seed)() % elements.size())] =
          std::numeric_limits<double>::quiet_NaN();
      const std::string what = testing::describe(random);
      CAPTURE(seed);
      CAPTURE(what);
      const Tensor<double>& grad_o = owned;
      // NaN on one side only is an infinite share.
      CHECK(testing::reference_share(random.problem, inputs.view(), grad_o.view()) <= 1);
    }
  }

  TEST_CASE("gradients have the same bits whatever runs the parts and head by head") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const Problem& p = random.problem;
      CAPTURE(seed);
      const OwnedInputs inputs = normal_inputs(p, seed);
      const Tensor<double> owned = testing::normal_grad_o(p, seed);
      const TensorView<const double> grad_o = owned.view();
      const Gradients one = reference_gradients(p, inputs.view(), grad_o);
      const Gradients other = reference_gradients(p, inputs.view(), grad_o, backwards);
      CHECK(same_bits(one.q, other.q));
      CHECK(same_bits(one.k, other.k));
      CHECK(same_bits(one.v, other.v));
      Gradients added{Tensor<double>(inputs.q.shape), Tensor<double>(inputs.k.shape),
                      Tensor<double>(inputs.v.shape)};
      for (Index s = 0; s < sequence_count(p); ++s) {
        const Sequence at = sequence(p, s);
        for (Index h = 0; h < p.num_heads_q; ++h) {
          const HeadGradients head =
              reference_gradients_head(p, inputs.view(), grad_o, at, h, backwards);
          const auto add = [&](const RowMatrix& m, Tensor<double>& t, Index to, Index first) {
            for (Index r = 0; r < m.rows(); ++r) {
              for (Index c = 0; c < m.cols(); ++c) t.view()(at.batch, to, first + r, c) += m(r, c);
            }
          };
          add(head.q, added.q, h, at.q_begin);
          add(head.k, added.k, h / q_heads_per_kv_head(p), at.kv_begin);
          add(head.v, added.v, h / q_heads_per_kv_head(p), at.kv_begin);
        }
      }
      CHECK(same_bits(one.q, added.q));
      CHECK(same_bits(one.k, added.k));
      CHECK(same_bits(one.v, added.v));
    }
  }

  TEST_CASE("lengths batches and heads of zero give gradients 0 or none") {
    for (const auto& [seqlen_q, seqlen_kv, batch] :
         {std::tuple<Index, Index, Index>{0, 5, 1}, {5, 0, 1}, {0, 0, 2}, {3, 4, 0}}) {
      Problem p = testing::one_head({seqlen_q, seqlen_kv, 4, 3});
      p.batch = batch;
      const OwnedInputs inputs = normal_inputs(p, 1);
      const Tensor<double> grad_o = testing::normal_grad_o(p, 1);
      const Gradients g = reference_gradients(p, inputs.view(), grad_o.view());
      CHECK((g.q.shape == inputs.q.shape && g.k.shape == inputs.k.shape));
      CHECK(g.v.shape == inputs.v.shape);
      if (batch == 0) continue;
      for (const Tensor<double>* gradient : {&g.q, &g.k, &g.v}) {
        for (const double value : gradient->elements) CHECK(value == 0);
      }
    }
  }

  TEST_CASE("a dO of another shape is rejected by name") {
    const Problem p = testing::one_head({4, 5, 3, 2});
    const OwnedInputs inputs = normal_inputs(p, 1);
    const Tensor<double> wrong({1, 1, 4, 3});
    CHECK_THROWS_WITH_AS(reference_gradients(p, inputs.view(), wrong.view()),
                         "grad_o = shape (1, 1, 4, 3): must be of shape (1, 1, 4, 2)", ConfigError);
  }

  TEST_CASE("the bounds are small: a dropped pair would not pass") {
    // fp64: below 1e-11 of values of size 1, while a pair of 30 is a share of 1e-3 at least.
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      CAPTURE(seed);
      const OwnedInputs inputs = normal_inputs(random.problem, seed);
      const Tensor<double> grad_o = testing::normal_grad_o(random.problem, seed);
      const auto exact = testing::oracle_gradients(random.problem, inputs.view(), grad_o.view(), 0,
                                                   0, NumberFormat::fp64);
      for (const Grid* bound : {&exact.q_bound, &exact.k_bound, &exact.v_bound}) {
        for (const long double value : bound->values) CHECK(value < 1e-10L);
      }
    }
  }
}

}  // namespace flashbound
