// Every backward program on the failure cases of gradient_cases.hpp, tile by tile.
#include "tests/core/gradient_cases.hpp"

#include "core/backward_inputs.hpp"
#include "core/programs.hpp"
#include "tests/core/gradient_check.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace flashbound {
namespace {

constexpr Tile kTile{.block_q = 24, .block_kv = 40};
constexpr Index kSequencesMax = 8;  // of a batch of many that are alike

void check(const char* name) {
  const Algorithm& algorithm = algorithm_named(name);
  const Program program = algorithm.program();
  Index heads = 0;
  for (const testing::GradientCase& one : testing::gradient_cases()) {
    const Problem& p = one.problem;
    if (p.softcap != 0 && algorithm.name == "standard-backward") continue;  // refuses it
    const std::string id = one.id;
    CAPTURE(id);
    const testing::GradientOperands operands = testing::operands_of(one);
    const Inputs inputs = operands.inputs.view();
    for (Index s = 0; s < std::min(sequence_count(p), kSequencesMax); ++s) {
      for (Index head = 0; head < p.num_heads_q; ++head) {
        CAPTURE(s);
        CAPTURE(head);
        const testing::HeadTarget target{p, inputs, operands.grad_o.view(), sequence(p, s), head};
        const BackwardInputs left = backward_inputs(p, inputs, target.grad_o, target.at, head);
        for (const NumberFormat format : {NumberFormat::fp64, NumberFormat::fp32}) {
          const NumericRun run =
              run_numeric(program, p, kTile, inputs, left, target.at, head, format);
          CHECK(testing::program_share(target, run, format) <= 1);
        }
        ++heads;
      }
    }
  }
  CHECK(heads > 30);
}

}  // namespace

// One test an algorithm, so that they run side by side; the list below must be whole.
TEST_SUITE("cross.gradient_cases") {
  TEST_CASE("standard-backward gives the right gradients of every failure case") {
    check("standard-backward");
  }
  TEST_CASE("flash1-backward gives the right gradients of every failure case") {
    check("flash1-backward");
  }
  TEST_CASE("flash2-backward gives the right gradients of every failure case") {
    check("flash2-backward");
  }
  TEST_CASE("every backward algorithm has its test above") {
    CHECK(algorithms(Pass::backward).size() == 3);
  }
}

}  // namespace flashbound
