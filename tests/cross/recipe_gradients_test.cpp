// Backward programs in narrow arithmetic: within the bound of tests/core/gradient_oracle.hpp, whose
// every rounding is by the unit roundoff of the recipe's coarsest format, and exactly zero where
// nothing is seen.
#include "core/backward_inputs.hpp"
#include "core/errors.hpp"
#include "core/gradients.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "experiments/distributions.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/gradient_check.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 300;

struct Target {
  testing::RandomCase random;
  OwnedInputs inputs;
  Tensor<double> grad_o;
  Sequence at{};
  Index head = 0;
};

Target target_of(std::uint64_t seed, const FloatFormat& format) {
  Target target{testing::random_case(seed), {}, {}, {}, 0};
  const Problem& p = target.random.problem;
  target.inputs = normal_inputs(p, seed);
  round_to(target.inputs, format);
  target.grad_o = testing::normal_grad_o(p, seed);
  for (double& x : target.grad_o.elements) x = round_to(format, x);
  target.at = sequence(p, static_cast<Index>(seed / 7) % sequence_count(p));
  target.head = static_cast<Index>(seed) % p.num_heads_q;
  return target;
}

// The largest share of the bound over random problems; `coarsest` is the recipe's format.
double worst_share(const Recipe& recipe, NumberFormat coarsest) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Target t = target_of(seed, recipe.inputs);
    const Problem& p = t.random.problem;
    const testing::HeadTarget head{p, t.inputs.view(), t.grad_o.view(), t.at, t.head};
    const BackwardInputs left = backward_inputs(p, head.inputs, head.grad_o, t.at, t.head);
    for (const Algorithm& algorithm : algorithms(Pass::backward)) {
      if (p.softcap != 0 && algorithm.name == "standard-backward") continue;
      const NumericRun run = run_numeric(algorithm.program(), p, t.random.tile, head.inputs, left,
                                         t.at, t.head, recipe);
      const double share = testing::program_share(head, run, coarsest);
      const std::string what = std::string(algorithm.name) + ": " + describe(t.random);
      CAPTURE(seed);
      CAPTURE(what);
      CHECK(share <= 1);
      worst = std::max(worst, share);
    }
  }
  return worst;
}

}  // namespace

TEST_SUITE("cross.recipe_gradients") {
  TEST_CASE("gradients with every operation rounded are within the bound of that format") {
    for (const NumberFormat format : {NumberFormat::tf32, NumberFormat::bf16}) {
      const std::string name(flashbound::name(format));
      const double worst = worst_share(uniform_recipe(format), format);
      MESSAGE("all-" << name << ": at most " << worst << " of the bound");
      CHECK(worst > 1e-6);  // or nothing was rounded
    }
  }

  TEST_CASE("gradients with 16-bit operands and fp32 between are within the bound of bf16") {
    for (const char* name : {"pytorch-bf16", "flash2-bf16", "flash4-bf16"}) {
      const std::string recipe(name);
      MESSAGE(recipe << ": at most " << worst_share(recipe_named(name), NumberFormat::bf16)
                     << " of the bound");
    }
  }

  TEST_CASE("rows without keys give nothing and get nothing in every recipe") {
    Problem p;
    p.seqlen_q = 5;
    p.seqlen_kv = 3;
    p.head_dim = p.head_dim_v = 4;
    p.window_right = 0;  // the first two queries see no key
    const OwnedInputs inputs = normal_inputs(p, 1);
    const Tensor<double> grad_o = testing::normal_grad_o(p, 1);
    const BackwardInputs left = backward_inputs(p, inputs.view(), grad_o.view(), sequence(p, 0), 0);
    std::vector<Recipe> all{recipe_named("all-fp8e4m3")};  // no infinity for lse
    for (const NamedRecipe& named : recipes()) all.push_back(named.recipe());
    for (const Recipe& recipe : all) {
      const std::string& name = recipe.name;
      CAPTURE(name);
      const auto run = [&](const Algorithm& algorithm) {
        return run_numeric(algorithm.program(), p, {.block_q = 2, .block_kv = 2}, inputs.view(),
                           left, sequence(p, 0), 0, recipe);
      };
      for (const Algorithm& algorithm : algorithms(Pass::backward)) {
        if (recipe.weight_offset_log2 != 0) {
          CHECK_THROWS_AS(run(algorithm), ConfigError);
          continue;
        }
        const NumericRun gradients = run(algorithm);
        const HeadTensor& q = *gradients.find("grad_q");
        for (Index c = 0; c < 4; ++c) CHECK((q(0, c) == 0 && q(1, c) == 0 && q(4, c) != 0));
        for (const char* output : {"grad_q", "grad_k", "grad_v"}) {
          for (const double x : gradients.find(output)->values) CHECK(std::isfinite(x));
        }
      }
    }
  }
}

}  // namespace flashbound
