// The a-priori bound (core/error_bound.hpp) on random problems: no program exceeds it in any
// recipe, and it is not so wide that it could not be exceeded.
#include "core/error_bound.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "core/quantization.hpp"
#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/core/within_bound.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 1000;

// One program a problem, all of them in turn: the largest error in units of the bound.
testing::WorstRatio worst_ratio(const Recipe& recipe) {
  testing::WorstRatio worst;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    testing::RandomCase random = testing::random_case(seed);
    // A third with logits of up to 10^5, where the weights are not known and only the spread is.
    if (seed % 3 == 1) random.problem.softmax_scale = std::pow(10.0, static_cast<double>(seed % 5));
    const Problem& p = random.problem;
    const OwnedInputs inputs = rounded_inputs(recipe, p, normal_inputs(p, seed).view());
    const Sequence at = sequence(p, static_cast<Index>(seed / 7) % sequence_count(p));
    const Index head = static_cast<Index>(seed) % p.num_heads_q;
    const Schedule schedule = schedule_for(p, random.tile, at);
    const HeadOutput reference = reference_head(p, inputs.view(), at, head);
    const HeadConditions conditions = head_conditions(p, inputs.view(), at, head);
    const ErrorBound own = error_bound(conditions, reference_rounding());
    const auto forward = algorithms(Pass::forward);
    const Program program = forward[seed % forward.size()].program();
    const ErrorBound bound =
        error_bound(conditions, program_rounding(recipe, program, schedule).value());
    const NumericRun run =
        run_numeric(program, p, random.tile, inputs.view(), at, head, recipe, seed);
    const HeadTensor& o = *run.find("o");
    const double before = worst.worst();
    for (Index r = 0; r < o.rows; ++r) {
      for (Index c = 0; c < o.cols; ++c) {
        const double allowed = bound.o(r, c) + own.o(r, c);
        // Infinite: the recipe may overflow there, and promises nothing.
        if (std::isfinite(allowed)) worst.add(o(r, c), reference.o(r, c), allowed);
      }
      if (const auto lse = run.lse(r)) {
        const double allowed = bound.lse(r) + own.lse(r);
        if (std::isfinite(allowed)) worst.add(*lse, reference.lse(r), allowed);
      }
    }
    if (worst.worst() > before && worst.worst() > 1) {
      const std::string what = program.name + ": " + testing::describe(random);
      CAPTURE(seed);
      CAPTURE(what);
      FAIL_CHECK("beyond the bound");
    }
  }
  return worst;
}

Recipe changed(const char* base, const char* name, void (*change)(Recipe&)) {
  Recipe recipe = recipe_named(base);
  recipe.name = name;
  change(recipe);
  return recipe;
}

void check(const Recipe& recipe, double tightness) {
  const testing::WorstRatio worst = worst_ratio(recipe);
  const std::string name = recipe.name;
  CAPTURE(name);
  MESSAGE(name << ": at most " << worst.worst() << " of the bound over " << worst.count()
               << " elements");
  CHECK(worst.worst() <= 1);
  CHECK(worst.worst() > tightness);
}

}  // namespace

TEST_SUITE("cross.recipe_bounds") {
  TEST_CASE("16-bit operands stay within the bound and come within a factor of four of it") {
    for (const char* name : {"pytorch-bf16", "pytorch-fp16", "flash2-bf16", "flash2-fp16",
                             "flash3-fp16", "flash4-bf16"}) {
      check(recipe_named(name), 0.25);
    }
  }

  TEST_CASE("every operation rounded stays within the bound") {
    for (const char* name : {"all-bf16", "all-fp16", "all-tf32", "all-fp32", "all-m5", "all-m30"}) {
      check(recipe_named(name), 0.01);
    }
  }

  TEST_CASE("other sums and rescales and roundings stay within the bound") {
    check(changed("all-bf16", "pairwise",
                  [](Recipe& r) {
                    r.scores_product.order = r.values_product.order = SumOrder::pairwise;
                    r.row_sum = SumOrder::pairwise;
                  }),
          0.01);
    check(changed("all-fp16", "toward-zero", [](Recipe& r) { r.rounding = Rounding::toward_zero; }),
          0.01);
    check(changed("all-tf32", "stochastic", [](Recipe& r) { r.rounding = Rounding::stochastic; }),
          0.01);
    check(changed("flash2-fp16", "polynomial-1",
                  [](Recipe& r) {
                    r.exponential = {.kind = ExponentialKind::polynomial, .degree = 1};
                  }),
          0.1);
    check(changed("flash2-bf16", "threshold-3",
                  [](Recipe& r) {
                    r.rescale = {.rule = RescaleRule::beyond_threshold, .threshold_log2 = 3};
                  }),
          0.25);
    check(changed("flash2-bf16", "offset-5", [](Recipe& r) { r.weight_offset_log2 = 5; }), 0.25);
    check(changed("flash2-bf16", "stochastic-tf32",
                  [](Recipe& r) {
                    r.rounding = Rounding::stochastic;
                    r.scores = float_format(NumberFormat::tf32);
                  }),
          0.1);
    check(changed("pytorch-bf16", "rounded-twice",
                  [](Recipe& r) {
                    r.inputs = r.stored = float_format(NumberFormat::fp32);
                    r.sum_of_rounded = true;
                  }),
          0.1);
    check(changed("pytorch-bf16", "narrow-statistics",
                  [](Recipe& r) {
                    r.inputs = r.probabilities = r.stored = float_format(NumberFormat::fp32);
                    r.statistics = parse_float_format("statistics", "m23e4/saturate");
                  }),
          0.0001);
    // Formats without infinity, in which masked scores are stored.
    check(changed("flash2-bf16", "saturating",
                  [](Recipe& r) { r.stored = parse_float_format("stored", "fp16/saturate"); }),
          0.25);
    check(recipe_named("all-fp8e4m3"), 0.01);
    check(changed("flash3-fp8", "fp8", [](Recipe& r) { r.quantization.rotated = false; }), 0.05);
  }
}

}  // namespace flashbound
