// Errors of whole runs: pooled over heads, against the right inputs, the same on any threads.
#include "experiments/numerics/measure.hpp"

#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "core/quantization.hpp"
#include "core/reference.hpp"
#include "experiments/command.hpp"
#include "experiments/distributions.hpp"
#include "experiments/parallel_for.hpp"
#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace flashbound {
namespace {

using testing::contains;
using testing::rejection;

// A run that owns what MeasuredRun views.
struct OwnedRun {
  Program program = flash2_program();
  Problem problem{};
  Recipe recipe = recipe_named("all-bf16");
  OwnedInputs inputs{};
  ReferenceKind reference = ReferenceKind::exact;
  ReferenceInputs reference_inputs = ReferenceInputs::rounded;
  std::uint64_t seed = 5;

  MeasuredRun view() const {
    MeasuredRun run;
    run.program = &program;
    run.problem = &problem;
    run.tile = {.block_q = 8, .block_kv = 8, .num_splits = 2};
    run.recipe = &recipe;
    run.inputs = &inputs;
    run.seed = seed;
    run.reference = reference;
    run.reference_inputs = reference_inputs;
    return run;
  }
};

Problem grouped_problem() {
  Problem problem;
  problem.batch = 2;
  problem.num_heads_q = 4;
  problem.num_heads_kv = 2;
  problem.seqlen_q = 11;
  problem.seqlen_kv = 19;
  problem.head_dim = 8;
  problem.head_dim_v = 5;
  problem.window_right = 0;
  return problem;
}

OwnedRun small_run() {
  OwnedRun run;
  run.problem = grouped_problem();
  run.inputs = distribution_inputs("normal", run.problem, 3);
  return run;
}

Measurement measured(const OwnedRun& run) {
  KeptReference kept;
  return measure(run.view(), kept, serial, [] {});
}

void check_same(const ErrorMetrics& a, const ErrorMetrics& b) {
  CHECK(a.count == b.count);
  CHECK(a.finite == b.finite);
  CHECK(a.nonfinite_mismatch == b.nonfinite_mismatch);
  CHECK(a.max_abs == b.max_abs);
  CHECK(a.max_relative == b.max_relative);
  CHECK(a.rmse == b.rmse);
  CHECK(a.max_ulp == b.max_ulp);
  CHECK(a.ulp_histogram == b.ulp_histogram);
  CHECK(a.signed_error.mean == b.signed_error.mean);
  CHECK(a.signed_error.sign_test_p == b.signed_error.sign_test_p);
  CHECK(a.magnitude_error.mean == b.magnitude_error.mean);
}

TEST_SUITE("experiments.numerics") {
  TEST_CASE("metrics are pooled over all heads of all sequences") {
    OwnedRun run = small_run();
    run.reference = ReferenceKind::fp64;
    const OwnedInputs rounded =
        rounded_inputs(run.recipe, run.problem, run.inputs.view(), run.seed);
    std::vector<double> computed;
    std::vector<double> expected;
    std::vector<double> computed_lse;
    std::vector<double> expected_lse;
    RescaleCount rescales;
    for (Index s = 0; s < sequence_count(run.problem); ++s) {
      const Sequence at = sequence(run.problem, s);
      for (Index h = 0; h < run.problem.num_heads_q; ++h) {
        const NumericRun head = run_numeric(run.program, run.problem, run.view().tile,
                                            rounded.view(), at, h, run.recipe);
        const HeadOutput right = reference_head(run.problem, rounded.view(), at, h);
        const std::vector<double>& o = head.find("o")->values;
        computed.insert(computed.end(), o.begin(), o.end());
        expected.insert(expected.end(), right.o.data(), right.o.data() + right.o.size());
        for (Index row = 0; row < at.seqlen_q; ++row) {
          computed_lse.push_back(*head.lse(row));
          expected_lse.push_back(right.lse(row));
        }
        rescales.done += head.rescales.done;
        rescales.skipped += head.rescales.skipped;
      }
    }
    const Measurement result = measured(run);
    check_same(result.o, error_metrics(computed, expected, run.recipe.stored));
    REQUIRE(result.lse);
    check_same(*result.lse, error_metrics(computed_lse, expected_lse, run.recipe.statistics));
    CHECK(result.rescales.done == rescales.done);
    CHECK(result.rescales.skipped == rescales.skipped);
    CHECK(result.o.count == 2 * 4 * 11 * 5);
    CHECK(result.o_per_row.count == 2 * 4 * 11);
    CHECK(result.o.max_abs > 0);
  }

  TEST_CASE("sequences that are packed are as many of their own") {
    OwnedRun packed = small_run();
    Problem& p = packed.problem;
    p.batch = 1;
    p.seqlen_q = 12;
    p.seqlen_kv = 12;
    p.cu_seqlens_q = {0, 5, 12};
    p.cu_seqlens_kv = {0, 5, 12};
    packed.inputs = distribution_inputs("normal", p, 3);
    CHECK(head_count(p) == 8);
    const Measurement result = measured(packed);
    CHECK(result.o.count == 4 * 12 * 5);
    CHECK(result.o.nonfinite_mismatch == 0);
    CHECK(result.o.max_abs < 0.2);
  }

  TEST_CASE("errors keep within the bound in the recipes that have one") {
    for (const NamedRecipe& recipe : recipes()) {
      for (const DistributionFacts& distribution : distributions()) {
        for (const ReferenceKind kind : {ReferenceKind::exact, ReferenceKind::fp64}) {
          CAPTURE(std::string(recipe.name));
          CAPTURE(std::string(distribution.name));
          OwnedRun run = small_run();
          run.recipe = recipe.recipe();
          run.inputs = distribution_inputs(distribution.name, run.problem, 3);
          run.reference = kind;
          const Measurement result = measured(run);
          REQUIRE(result.ratio_to_bound);
          CHECK(*result.ratio_to_bound <= 1);
          CHECK(*result.bound_max > 0);
          CHECK(result.range.has_value() == (recipe.name != "fp32" && recipe.name != "fp64"));
        }
      }
    }
    OwnedRun other = small_run();
    other.recipe.shift = Shift::avoid_one;
    CHECK(!measured(other).bound_max);
    CHECK(!measured(other).ratio_to_bound);
  }

  TEST_CASE("an error beyond the bound shows as a ratio above 1") {
    OwnedRun run = small_run();
    run.recipe = recipe_named("fp32");
    run.program = flash2_program();
    KeptReference kept;
    const MeasuredRun view = run.view();
    measure(view, kept, serial, [] {});
    kept.outputs.o.elements[7] += 1;
    CHECK(*measure(view, kept, serial, [] {}).ratio_to_bound > 100);
    kept.outputs.o.elements[7] = std::numeric_limits<double>::infinity();
    const Measurement result = measure(view, kept, serial, [] {});
    CHECK(std::isinf(*result.ratio_to_bound));
    CHECK(result.o.nonfinite_mismatch == 1);
  }

  TEST_CASE("undecided elements are counted and left out") {
    OwnedRun run = small_run();
    run.recipe = recipe_named("fp64");
    KeptReference kept;
    const MeasuredRun view = run.view();
    measure(view, kept, serial, [] {});
    kept.outputs.undecided_o = {0, 7};
    kept.outputs.undecided_lse = {3};
    kept.outputs.o.elements[7] = std::numeric_limits<double>::quiet_NaN();
    const Measurement result = measure(view, kept, serial, [] {});
    CHECK(result.undecided_o == 2);
    CHECK(result.o.count == 2 * 4 * 11 * 5 - 2);
    CHECK(result.o.nonfinite_mismatch == 0);
    CHECK(*result.ratio_to_bound <= 1);
    CHECK(result.o_per_row.count == 2 * 4 * 11 - 1);  // element 0 was its row's
    CHECK(result.lse->count == 2 * 4 * 11 - 1);
  }

  TEST_CASE("a reference is shared by equal inputs and by nothing else") {
    OwnedRun run = small_run();
    KeptReference kept;
    measure(run.view(), kept, serial, [] {});
    kept.outputs.o.elements[0] += 64;  // a mark
    const auto is_marked = [&] { return measure(run.view(), kept, serial, [] {}).o.max_abs > 32; };
    run.recipe = recipe_named("flash2-bf16");  // rounds inputs alike
    CHECK(is_marked());
    run.recipe = recipe_named("flash2-fp16");
    CHECK(!is_marked());
    kept.outputs.o.elements[0] += 64;
    run.problem.softcap = 3;
    CHECK(!is_marked());
    kept.outputs.o.elements[0] += 64;
    run.reference = ReferenceKind::fp64;
    CHECK(!is_marked());
  }

  TEST_CASE("against unrounded inputs their rounding is an error too") {
    OwnedRun run = small_run();
    run.recipe = uniform_recipe("wide", float_format(NumberFormat::fp64));
    run.recipe.inputs = float_format(NumberFormat::bf16);
    CHECK(measured(run).o.max_abs < 1e-14);
    run.reference_inputs = ReferenceInputs::unrounded;
    CHECK(measured(run).o.max_abs > 1e-4);
    run.recipe = recipe_named("fp32");
    CHECK(!measured(run).bound_max);
  }

  TEST_CASE("a program that keeps no lse has no errors of it") {
    OwnedRun run = small_run();
    run.program = standard_program();
    CHECK(!measured(run).lse);
    run.program = flash1_program();
    REQUIRE(measured(run).lse);
    CHECK(measured(run).lse->max_abs < 0.1);
  }

  TEST_CASE("NaN agrees with the NaN that the reference has") {
    OwnedRun run = small_run();
    run.inputs.v.elements[0] = std::numeric_limits<double>::quiet_NaN();
    const Measurement result = measured(run);
    CHECK(result.o.both_nan > 0);
    CHECK(result.o.nonfinite_mismatch == 0);
  }

  TEST_CASE("a recipe that cannot take a problem says so") {
    OwnedRun run = small_run();
    run.problem.head_dim = 3;
    run.inputs = distribution_inputs("normal", run.problem, 3);
    run.recipe = recipe_named("flash3-fp8");
    CHECK(contains(rejection([&] { measured(run); }), "head_dim = 3"));
  }

  TEST_CASE("heads round stochastically with seeds of their own") {
    OwnedRun run = small_run();
    run.problem = {};
    run.problem.num_heads_q = 2;
    run.problem.seqlen_q = run.problem.seqlen_kv = 16;
    run.problem.head_dim = run.problem.head_dim_v = 8;
    run.inputs = distribution_inputs("constant", run.problem, 3);
    run.inputs.v = distribution_inputs("normal", run.problem, 3).v;
    run.recipe.rounding = Rounding::stochastic;
    // Two heads on the same keys and queries.
    KeptReference kept;
    const Measurement both = measure(run.view(), kept, serial, [] {});
    run.problem.num_heads_q = 1;
    run.inputs.q = Tensor<double>({1, 1, 16, 8}, 1.0);
    KeptReference alone;
    const Measurement first = measure(run.view(), alone, serial, [] {});
    CHECK(both.o.rmse != first.o.rmse);
    run.seed = 6;
    KeptReference other;
    CHECK(measure(run.view(), other, serial, [] {}).o.rmse != first.o.rmse);
  }
}

std::string printed(const std::string& threads) {
  const std::vector<std::string> words{"numerics",
                                       "--seqlen",
                                       "40",
                                       "--num-heads",
                                       "3",
                                       "--batch",
                                       "2",
                                       "--head-dim",
                                       "8",
                                       "--algorithm",
                                       "all",
                                       "--block-q",
                                       "16",
                                       "--block-kv",
                                       "8",
                                       "--recipe",
                                       "fp32,all-bf16,flash3-fp8",
                                       "--format",
                                       "jsonl",
                                       "--threads",
                                       threads};
  std::ostringstream out;
  std::ostringstream err;
  CHECK(run_command(words, out, err) == 0);
  return out.str();
}

TEST_SUITE("experiments.numerics_threads") {
  TEST_CASE("rows are the same bytes on any number of threads") {
    const std::string alone = printed("1");
    CHECK(contains(alone, "\"ulp_histogram\""));
    for (const char* threads : {"2", "3", "16"}) CHECK(printed(threads) == alone);
  }

  TEST_CASE("stochastic rounding is the same on any number of threads") {
    OwnedRun run = small_run();
    run.recipe.rounding = Rounding::stochastic;
    const Measurement alone = measured(run);
    for (const Index threads : {2, 5}) {
      KeptReference kept;
      std::atomic<int> finished = 0;
      const Measurement result = measure(run.view(), kept, threaded(threads), [&] { ++finished; });
      check_same(result.o, alone.o);
      check_same(*result.lse, *alone.lse);
      CHECK(finished == 8);
    }
  }
}

}  // namespace
}  // namespace flashbound
