// exact_gradients() against long arithmetic, central differences and rational values.
#include "core/errors.hpp"
#include "core/exact.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/exact_oracle.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/core/same_numbers.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

TEST_SUITE_BEGIN("core.exact_gradients");

namespace flashbound {
namespace {

using testing::one_head;
using testing::same_numbers;

constexpr double kUlp = 0x1p-52;

// dO of the problem's shape.
Tensor<double> normal_grad(const Problem& p, std::uint64_t seed) {
  Problem of_output = p;
  of_output.head_dim = p.head_dim_v;
  return normal_inputs(of_output, seed).q;
}
ExactGradients gradients_of(const Problem& p, const OwnedInputs& inputs, const Tensor<double>& grad,
                            const ExactOptions& options = {},
                            const ParallelFor& parallel_for = serial) {
  return exact_gradients(p, inputs.view(), grad.view(), options, parallel_for);
}

TEST_CASE("exact gradients are the definition in long arithmetic rounded once") {
  for (std::uint64_t seed = 4000; seed < 4200; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const Problem& p = random.problem;
    const std::string text = testing::describe(random);
    CAPTURE(text);
    CAPTURE(seed);
    const OwnedInputs inputs = normal_inputs(p, seed);
    const Tensor<double> grad = normal_grad(p, seed + 1);
    const ExactGradients result = gradients_of(p, inputs, grad);
    auto expected = testing::long_gradients(p, inputs.view(), grad.view(), 400);
    REQUIRE(result.undecided_q.empty());
    REQUIRE(result.undecided_k.empty());
    REQUIRE(result.undecided_v.empty());
    CHECK(result.precision <= 128);  // 0 where no query faces a key
    const Gradients& g = result.gradients;
    REQUIRE(same_numbers(g.q.elements, expected.q.elements));
    REQUIRE(same_numbers(g.k.elements, expected.k.elements));
    REQUIRE(same_numbers(g.v.elements, expected.v.elements));
  }
}

// Each element of each gradient against (O(x + h) - O(x - h)) . dO / 2h.
double worst_difference(const Problem& p, std::uint64_t seed) {
  const OwnedInputs inputs = normal_inputs(p, seed);
  const Tensor<double> grad = normal_grad(p, seed + 1);
  const Gradients exact = gradients_of(p, inputs, grad).gradients;
  const double step = 0x1p-26;
  double worst = 0;
  const auto compare = [&](Tensor<double> OwnedInputs::*member, const Tensor<double>& gradient) {
    for (std::size_t n = 0; n < gradient.elements.size(); ++n) {
      OwnedInputs plus = inputs;
      OwnedInputs minus = inputs;
      (plus.*member).elements[n] += step;
      (minus.*member).elements[n] = (inputs.*member).elements[n] - step;
      // What the two inputs really are apart.
      const double width = (plus.*member).elements[n] - (minus.*member).elements[n];
      const double slope =
          testing::difference_quotient(p, plus.view(), minus.view(), grad.view(), width / 2, 200);
      worst = std::max(worst, std::abs(slope - gradient.elements[n]));
    }
  };
  compare(&OwnedInputs::q, exact.q);
  compare(&OwnedInputs::k, exact.k);
  compare(&OwnedInputs::v, exact.v);
  return worst;
}

TEST_CASE("exact gradients are the limits of central differences") {
  // A difference errs by O(h^2) = 2^-52 times third derivatives.
  Problem p = one_head({3, 4, 2, 2});
  CHECK(worst_difference(p, 1) < 1e-13);
  p.window_left = 1;
  p.window_right = 0;
  CHECK(worst_difference(p, 2) < 1e-13);
  p.softcap = 2;
  CHECK(worst_difference(p, 3) < 1e-13);
  p.alibi_slopes = {0.5};
  p.sink = {0.25};
  CHECK(worst_difference(p, 4) < 1e-13);
  p = one_head({2, 3, 2, 1});
  p.num_heads_q = 4;
  p.num_heads_kv = 2;
  p.sink = {0, 1, -1, 0.5};
  CHECK(worst_difference(p, 5) < 1e-13);
}

TEST_CASE("a key head gathers what its query heads give back") {
  Problem p = one_head({4, 5, 3, 2});
  p.num_heads_q = 2;
  const OwnedInputs inputs = normal_inputs(p, 9);
  Tensor<double> grad = normal_grad(p, 10);
  // Only one of the two heads is asked: the other's share is zero.
  for (std::size_t n = grad.elements.size() / 2; n < grad.elements.size(); ++n) {
    grad.elements[n] = 0;
  }
  const Gradients both = gradients_of(p, inputs, grad).gradients;
  Problem alone = p;
  alone.num_heads_q = 1;
  OwnedInputs first = inputs;
  first.q = Tensor<double>({1, 1, 4, 3});
  Tensor<double> first_grad({1, 1, 4, 2});
  std::copy_n(inputs.q.elements.begin(), 12, first.q.elements.begin());
  std::copy_n(grad.elements.begin(), 8, first_grad.elements.begin());
  const Gradients one = gradients_of(alone, first, first_grad).gradients;
  CHECK(both.k.elements == one.k.elements);
  CHECK(both.v.elements == one.v.elements);
  for (std::size_t n = 12; n < 24; ++n) CHECK(both.q.elements[n] == 0);
}

TEST_CASE("rows without keys and keys without rows have gradients of zero") {
  Problem p = one_head({6, 3, 2, 2});
  p.window_right = 0;  // rows 0 to 2 see nothing
  p.window_left = 0;
  const OwnedInputs inputs = normal_inputs(p, 11);
  const ExactGradients result = gradients_of(p, inputs, normal_grad(p, 12));
  // Each other row sees one key: P = 1 and dS = 0.
  for (const double x : result.gradients.q.elements) CHECK(x == 0);
  for (const double x : result.gradients.k.elements) CHECK(x == 0);
  const Tensor<double> grad = normal_grad(p, 12);
  for (std::size_t n = 0; n < 6; ++n) {
    CHECK(result.gradients.v.elements[n] == grad.elements[6 + n]);
  }
  CHECK(result.precision == 128);
  for (const Index seqlen_q : {0, 3}) {
    for (const Index seqlen_kv : {0, 3}) {
      if (seqlen_q * seqlen_kv > 0) continue;
      const Problem empty = one_head({seqlen_q, seqlen_kv, 2, 2});
      const Gradients none =
          gradients_of(empty, normal_inputs(empty, 1), normal_grad(empty, 1)).gradients;
      CHECK(none.q.elements == std::vector<double>(static_cast<std::size_t>(2 * seqlen_q), 0.0));
      CHECK(none.k.elements == std::vector<double>(static_cast<std::size_t>(2 * seqlen_kv), 0.0));
    }
  }
}

TEST_CASE("structure gives zeros without any more precision") {
  Problem p = one_head({4, 7, 3, 2});
  OwnedInputs inputs = normal_inputs(p, 13);
  const Tensor<double> grad = normal_grad(p, 14);
  // One column of K the same for all keys: dL of a row add up to zero.
  for (Index j = 0; j < 7; ++j) inputs.k.view()(0, 0, j, 1) = 0.7;
  ExactGradients result = gradients_of(p, inputs, grad);
  for (Index i = 0; i < 4; ++i) CHECK(result.gradients.q.view()(0, 0, i, 1) == 0);
  CHECK(result.precision == 128);
  // All values alike: so are all dP.
  for (std::size_t n = 0; n < inputs.v.elements.size(); ++n) {
    inputs.v.elements[n] = inputs.v.elements[n % 2];
  }
  result = gradients_of(p, inputs, grad);
  for (const double x : result.gradients.q.elements) CHECK(x == 0);
  for (const double x : result.gradients.k.elements) CHECK(x == 0);
  CHECK(result.precision == 128);
  // A sink has dP = 0, so that dS is not zero any more.
  p.sink = {0.5};
  result = gradients_of(p, inputs, grad);
  for (const double x : result.gradients.k.elements) CHECK(x != 0);
  CHECK(result.precision == 128);
}

TEST_CASE("ties of rational gradients go to the even double") {
  // Two equal logits: P = 1/2, dV = dO / 2, and dS = (dP_0 - dP_1) / 4.
  Problem p = one_head({2, 2, 1, 1});
  p.softmax_scale = 1;
  OwnedInputs inputs = normal_inputs(p, 15);
  inputs.q.elements = {0, 0};
  inputs.k.elements = {1, 0};
  inputs.v.elements = {4, 0};
  Tensor<double> grad({1, 1, 2, 1});
  grad.elements = {2, 2 * kUlp / 2};  // dV = 1 + ulp / 2
  ExactGradients result = gradients_of(p, inputs, grad);
  CHECK(result.gradients.v.elements == std::vector<double>{1, 1});
  CHECK(result.gradients.q.elements == std::vector<double>{2, kUlp});
  grad.elements = {2 + 2 * kUlp, kUlp};  // dV = 1 + 3/2 ulp
  result = gradients_of(p, inputs, grad);
  CHECK(result.gradients.v.elements == std::vector<double>{1 + 2 * kUlp, 1 + 2 * kUlp});
  CHECK(result.precision == 128);
  // dK = sum of dS q, half way between two doubles.
  inputs.q.elements = {1, 1};
  inputs.k.elements = {1, 1};
  grad.elements = {1, kUlp / 2};
  result = gradients_of(p, inputs, grad);
  CHECK(result.gradients.k.elements == std::vector<double>{1, -1});
  CHECK(result.gradients.q.elements == std::vector<double>{0, 0});
  CHECK(result.precision == 128);
  grad.elements = {1 + kUlp, kUlp / 2};
  result = gradients_of(p, inputs, grad);
  CHECK(result.gradients.k.elements == std::vector<double>{1 + 2 * kUlp, -1 - 2 * kUlp});
}

// The first query gives dV of key 0 half of its dO, and the second one e^-gap of it.
struct NearTie {
  Problem problem = one_head({2, 2, 1, 1});
  OwnedInputs inputs;
  Tensor<double> grad{{1, 1, 2, 1}};
};
NearTie near_tie(double gap) {
  NearTie near;
  near.problem.softmax_scale = 1;
  near.inputs = normal_inputs(near.problem, 1);
  near.inputs.q.elements = {0, 1};
  near.inputs.k.elements = {-gap, 0};
  near.inputs.v.elements = {0, 0};
  near.grad.elements = {2 + 2 * kUlp, 0.5};
  return near;
}

TEST_CASE("gradients near a boundary take more precision or are reported at the cap") {
  // dV of key 0 = 1 + ulp + e^-200 / 2: beside no boundary.
  NearTie near = near_tie(200);
  CHECK(gradients_of(near.problem, near.inputs, near.grad).precision == 128);
  // 1 + ulp / 2 + e^-200: beside one.
  near.problem.seqlen_q = 3;
  near.inputs.q = Tensor<double>({1, 1, 3, 1});
  near.inputs.q.elements = {0, 1, 0};
  near.grad = Tensor<double>({1, 1, 3, 1});
  near.grad.elements = {2, 1, kUlp};
  const ExactGradients decided = gradients_of(near.problem, near.inputs, near.grad);
  CHECK(decided.precision == 512);
  CHECK(decided.gradients.v.elements[0] == 1 + kUlp);
  CHECK(decided.undecided_v.empty());
  const ExactGradients capped = gradients_of(near.problem, near.inputs, near.grad,
                                             {.first_precision = 128, .precision_cap = 256});
  CHECK(capped.undecided_v == std::vector<Index>{0});
  CHECK(std::isnan(capped.gradients.v.elements[0]));
  CHECK(capped.gradients.v.elements[1] == decided.gradients.v.elements[1]);
  CHECK(capped.undecided_q.empty());
  CHECK(capped.precision == 256);
}

TEST_CASE("a number that is not finite reaches what its rows reach") {
  Problem p = one_head({3, 3, 2, 2});
  p.window_right = 0;
  const OwnedInputs clean = normal_inputs(p, 21);
  const Tensor<double> grad = normal_grad(p, 22);
  const double nan = std::nan("");
  const auto nans = [](const Tensor<double>& tensor) {
    std::string text;
    for (const double x : tensor.elements) text += std::isnan(x) ? 'n' : '.';
    return text;
  };
  OwnedInputs inputs = clean;
  inputs.k.view()(0, 0, 1, 0) = nan;  // rows 1 and 2 see it, and keys 0 to 2 are theirs
  Gradients g = gradients_of(p, inputs, grad).gradients;
  CHECK(nans(g.q) == "..nnnn");
  CHECK(nans(g.k) == "nnnnnn");
  CHECK(nans(g.v) == "nnnnnn");
  inputs = clean;
  inputs.v.view()(0, 0, 2, 0) = nan;  // row 2 alone, whose weights are fine
  g = gradients_of(p, inputs, grad).gradients;
  CHECK(nans(g.q) == "....nn");
  CHECK(nans(g.k) == "nnnnnn");
  CHECK(nans(g.v) == "......");
  Tensor<double> bad = grad;
  bad.view()(0, 0, 0, 1) = nan;  // row 0 sees key 0 alone
  g = gradients_of(p, clean, bad).gradients;
  CHECK(nans(g.q) == "nn....");
  CHECK(nans(g.k) == "nn....");
  CHECK(nans(g.v) == ".n....");
}

TEST_CASE("a gradient of another shape than the output is named") {
  const Problem p = one_head({3, 4, 2, 5});
  const OwnedInputs inputs = normal_inputs(p, 1);
  const Tensor<double> grad({1, 1, 3, 4});
  std::string message;
  try {
    gradients_of(p, inputs, grad);
  } catch (const ConfigError& error) {
    message = error.what();
  }
  CHECK(message.starts_with("grad_o = "));
}

// Under a suite of its own, which the thread sanitizer runs.
TEST_CASE("exact gradients are the same whatever runs the parts" * doctest::test_suite("threads")) {
  Problem p = one_head({70, 45, 4, 3});
  p.num_heads_q = 2;
  p.window_right = 3;
  const OwnedInputs inputs = normal_inputs(p, 23);
  Tensor<double> grad = normal_grad(p, 24);
  const Gradients expected = gradients_of(p, inputs, grad).gradients;
  const ParallelFor backwards = [](Index count, const std::function<void(Index)>& body) {
    for (Index part = count; part-- > 0;) body(part);
  };
  for (const ParallelFor& parallel_for : {backwards, testing::three_threads()}) {
    const Gradients actual = gradients_of(p, inputs, grad, {}, parallel_for).gradients;
    CHECK(actual.q.elements == expected.q.elements);
    CHECK(actual.k.elements == expected.k.elements);
    CHECK(actual.v.elements == expected.v.elements);
  }
  // Facts of 4096 bits live on the heap, and are made by one thread and freed by another.
  const ExactOptions long_numbers{.first_precision = 4096, .precision_cap = 4096};
  p.seqlen_q = 5;
  const OwnedInputs few = normal_inputs(p, 23);
  grad = normal_grad(p, 24);
  const Gradients one = gradients_of(p, few, grad, long_numbers).gradients;
  const Gradients three =
      gradients_of(p, few, grad, long_numbers, testing::three_threads()).gradients;
  CHECK(one.k.elements == three.k.elements);
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
