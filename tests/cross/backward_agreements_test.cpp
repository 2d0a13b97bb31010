// Every backward program, run tile by tile, gives the reference's gradients within derived bounds
// (tests/core/gradient_oracle.hpp), and a NaN reaches what it reaches there.
#include "core/backward_inputs.hpp"
#include "core/errors.hpp"
#include "core/gradients.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/gradient_check.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 1200;

// One head of one sequence of a random problem, with everything that its gradients are made from.
struct Target {
  testing::RandomCase random;
  OwnedInputs inputs;
  Tensor<double> grad_o;
  Sequence at{};
  Index head = 0;

  explicit Target(std::uint64_t seed) : random(testing::random_case(seed)) {
    const Problem& p = random.problem;
    inputs = normal_inputs(p, seed);
    round_to_fp32(inputs);
    grad_o = testing::normal_grad_o(p, seed);
    at = sequence(p, static_cast<Index>(seed / 7) % sequence_count(p));
    head = static_cast<Index>(seed) % p.num_heads_q;
  }
  const Problem& problem() const { return random.problem; }
  TensorView<const double> go() const { return grad_o.view(); }

  HeadGradients reference() const {
    return reference_gradients_head(problem(), inputs.view(), go(), at, head);
  }
  BackwardInputs left_by_reference() const {
    return backward_inputs(problem(), inputs.view(), go(), at, head);
  }
  double share(const NumericRun& run, NumberFormat format, Index updates = 0) const {
    return testing::program_share({problem(), inputs.view(), go(), at, head}, run, format, updates);
  }
  NumericRun run(const Program& program, const BackwardInputs& left, NumberFormat format) const {
    return run_numeric(program, problem(), random.tile, inputs.view(), left, at, head, format);
  }
};

// P alone says nothing about a softcap.
bool can_run(const Algorithm& algorithm, const Problem& problem) {
  return problem.softcap == 0 || algorithm.name != "standard-backward";
}

void check_all(NumberFormat format) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Target target(seed);
    const BackwardInputs left = target.left_by_reference();
    for (const Algorithm& algorithm : algorithms(Pass::backward)) {
      const std::string what = std::string(algorithm.name) + ": " + describe(target.random);
      CAPTURE(seed);
      CAPTURE(what);
      if (!can_run(algorithm, target.problem())) continue;
      CHECK(target.share(target.run(algorithm.program(), left, format), format) <= 1);
    }
  }
}

bool same_nan(const HeadTensor& computed, const RowMatrix& reference) {
  for (Index r = 0; r < computed.rows; ++r) {
    for (Index c = 0; c < computed.cols; ++c) {
      if (std::isnan(computed(r, c)) != std::isnan(reference(r, c))) return false;
    }
  }
  return true;
}

}  // namespace

TEST_SUITE("cross.backward") {
  TEST_CASE("fp64 tiles = reference gradients for every backward program on random problems") {
    check_all(NumberFormat::fp64);
  }

  TEST_CASE("fp32 tiles = reference gradients for every backward program on random problems") {
    check_all(NumberFormat::fp32);
  }

  TEST_CASE("what a forward program leaves serves its backward program") {
    for (std::uint64_t seed = 0; seed < kCases / 4; ++seed) {
      const Target target(seed);
      CAPTURE(seed);
      for (const char* name : {"flash1", "flash2"}) {
        CAPTURE(name);
        const NumericRun forward =
            run_numeric(algorithm_named(name).program(), target.problem(), target.random.tile,
                        target.inputs.view(), target.at, target.head, NumberFormat::fp64);
        const BackwardInputs left =
            backward_inputs(forward, target.problem(), target.go(), target.at, target.head);
        const Program program = algorithm_named(std::string(name) + "-backward").program();
        const NumericRun run = target.run(program, left, NumberFormat::fp64);
        // A row is folded once a block of keys at most.
        const Index updates = Partition{target.at.seqlen_kv, target.random.tile.block_kv}.count();
        CHECK(target.share(run, NumberFormat::fp64, updates) <= 1);
      }
    }
  }

  TEST_CASE("a NaN in any operand reaches what it reaches in the reference") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      Target target(seed);
      Tensor<double>* const operands[] = {&target.inputs.q, &target.inputs.k, &target.inputs.v,
                                          &target.grad_o};
      std::vector<double>& elements = operands[seed % 4]->elements;
      elements[static_cast<std::size_t>(std::mt19937_64(seed)() % elements.size())] =
          std::numeric_limits<double>::quiet_NaN();
      const BackwardInputs left = target.left_by_reference();
      const HeadGradients reference = target.reference();
      for (const Algorithm& algorithm : algorithms(Pass::backward)) {
        const std::string what = std::string(algorithm.name) + ": " + describe(target.random);
        CAPTURE(seed);
        CAPTURE(what);
        if (!can_run(algorithm, target.problem())) continue;
        const NumericRun run = target.run(algorithm.program(), left, NumberFormat::fp64);
        CHECK(same_nan(*run.find("grad_q"), reference.q));
        CHECK(same_nan(*run.find("grad_k"), reference.k));
        CHECK(same_nan(*run.find("grad_v"), reference.v));
      }
    }
  }

  // With the same P, O rounds at most n + 2 times a term and each sum of delta once a term.
  TEST_CASE("delta is rowsum of dO o O and of P o dP to rounding") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const Target target(seed);
      const BackwardInputs left = target.left_by_reference();
      const HeadTensor& grad_o = *left.find("grad_o");
      const HeadTensor& o = *left.find("o");
      const HeadTensor& p = *left.find("p");
      const Index kv_head = target.head / q_heads_per_kv_head(target.problem());
      const auto v = target.inputs.view().v;
      CAPTURE(seed);
      const auto roundings = static_cast<double>(3 * p.cols + 2 * o.cols + 6);
      for (Index r = 0; r < o.rows; ++r) {
        double from_o = 0;
        double from_p = 0;
        double magnitude = 0;
        for (Index c = 0; c < o.cols; ++c) from_o += grad_o(r, c) * o(r, c);
        for (Index j = 0; j < p.cols; ++j) {
          double dp = 0;
          double dp_magnitude = 0;
          for (Index c = 0; c < o.cols; ++c) {
            const double term =
                grad_o(r, c) * v(target.at.batch, kv_head, target.at.kv_begin + j, c);
            dp += term;
            dp_magnitude += std::abs(term);
          }
          from_p += p(r, j) * dp;
          magnitude += p(r, j) * dp_magnitude;
        }
        CHECK(std::abs(from_o - from_p) <= std::expm1(roundings * 0x1p-52) * magnitude);
      }
    }
  }

  TEST_CASE("a softcap is refused by the program that keeps only P") {
    Problem p = testing::one_head({4, 5, 3, 2});
    p.softcap = 10;
    const OwnedInputs inputs = normal_inputs(p, 1);
    const Tensor<double> owned = testing::normal_grad_o(p, 1);
    const TensorView<const double> grad_o = owned.view();
    const BackwardInputs left = backward_inputs(p, inputs.view(), grad_o, sequence(p, 0), 0);
    CHECK_THROWS_AS(run_numeric(standard_backward_program(), p, Tile{}, inputs.view(), left,
                                sequence(p, 0), 0, NumberFormat::fp64),
                    ConfigError);
  }

  TEST_CASE("an input that is missing or of another shape is named") {
    const Problem p = testing::one_head({4, 5, 3, 2});
    const OwnedInputs inputs = normal_inputs(p, 1);
    const auto run = [&](const BackwardInputs& left) {
      run_numeric(flash2_backward_program(), p, Tile{}, inputs.view(), left, sequence(p, 0), 0,
                  NumberFormat::fp64);
    };
    CHECK_THROWS_WITH_AS(run({}), "program input = o: must be q, k, v or given", ConfigError);
    BackwardInputs left;
    left.tensors.push_back({"o", 4, 3, std::vector<double>(12)});
    CHECK_THROWS_WITH_AS(run(left), "o = another shape: must be 4 x 2 for this head", ConfigError);
  }
}

}  // namespace flashbound
