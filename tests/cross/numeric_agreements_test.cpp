// Every program, run tile by tile, gives the reference's O and lse within derived error bounds.
#include "core/count.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "experiments/random_inputs.hpp"
#include "experiments/verify_checks.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 1200;

// What of a random case is computed: one head of one sequence, both chosen by the seed.
struct Part {
  Sequence sequence;
  Index head = 0;
};

Part part_of(const Problem& problem, std::uint64_t seed) {
  return {sequence(problem, static_cast<Index>(seed / 7) % sequence_count(problem)),
          static_cast<Index>(seed) % problem.num_heads_q};
}

void check_all(NumberFormat format) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    OwnedInputs inputs = normal_inputs(random.problem, seed);
    round_to_fp32(inputs);
    const Part part = part_of(random.problem, seed);
    const NumericTarget target = numeric_target("random", random.problem, random.tile,
                                                inputs.view(), part.sequence, part.head, serial);
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
      CAPTURE(seed);
      CAPTURE(what);
      const VerifyCheck check = check_numeric(target, algorithm, format);
      CAPTURE(check.quantity);
      CAPTURE(check.worst_difference);
      CAPTURE(check.allowed_difference);
      CHECK(check.passed);
    }
  }
}

}  // namespace

TEST_SUITE("cross.numeric") {
  TEST_CASE("fp64 tiles = reference for every algorithm on random problems") {
    check_all(NumberFormat::fp64);
  }

  TEST_CASE("fp32 tiles = reference for every algorithm on random problems") {
    check_all(NumberFormat::fp32);
  }

  TEST_CASE("the bounds are small: not every wrong answer passes") {
    // Benign data: the allowance stays below 1e-12 of the values' size, a thousandth of what one
    // dropped key of 30 would change.
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const OwnedInputs inputs = normal_inputs(random.problem, seed);
      const Part part = part_of(random.problem, seed);
      const NumericTarget target = numeric_target("random", random.problem, random.tile,
                                                  inputs.view(), part.sequence, part.head, serial);
      const VerifyCheck check =
          check_numeric(target, algorithm_named("flash2"), NumberFormat::fp64);
      CAPTURE(seed);
      CHECK(check.allowed_difference < 1e-12 * 8);
    }
  }

  TEST_CASE("the bounds of lse are small too and grow with the updates of a row") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const OwnedInputs inputs = normal_inputs(random.problem, seed);
      const Part part = part_of(random.problem, seed);
      const HeadConditions conditions =
          head_conditions(random.problem, inputs.view(), part.sequence, part.head);
      const Schedule schedule = schedule_for(random.problem, random.tile, part.sequence);
      const RoundingModel model = program_rounding(NumberFormat::fp64, schedule);
      const ErrorBound bound = error_bound(conditions, model);
      RoundingModel no_updates = model;
      no_updates.updates = 0;
      const ErrorBound less = error_bound(conditions, no_updates);
      CAPTURE(seed);
      // Every program folds each visible block once at least.
      CHECK(model.updates >= schedule.kv_block_count());
      for (Index r = 0; r < bound.lse.size(); ++r) {
        const RowConditions& row = conditions.rows[static_cast<std::size_t>(r)];
        // Logits below 100 in size: a few hundred roundings of them.
        CHECK(bound.lse(r) <= 1e3 * 0x1p-53 * (100 + std::abs(row.product_max)));
        if (row.visible > 1) CHECK(bound.lse(r) > less.lse(r));
      }
    }
  }

  TEST_CASE("actual rescales never exceed their upper bound") {
    for (std::uint64_t seed = 0; seed < kCases / 4; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const OwnedInputs inputs = normal_inputs(random.problem, seed);
      const Part part = part_of(random.problem, seed);
      for (const Algorithm& algorithm : algorithms(Pass::forward)) {
        const Program program = algorithm.program();
        const Schedule schedule = schedule_for(random.problem, random.tile, part.sequence);
        const NumericRun run = run_numeric(program, random.problem, random.tile, inputs.view(),
                                           part.sequence, part.head, NumberFormat::fp64);
        const IoCount counted = count_head(program, schedule, NumberFormat::fp64);
        CHECK(Events(run.rescales.done) <= counted.rescales_at_most);
      }
    }
  }

  TEST_CASE("increasing scores rescale at every block and decreasing ones never") {
    Problem problem;
    problem.seqlen_q = 1;
    problem.seqlen_kv = 64;
    problem.head_dim = problem.head_dim_v = 1;
    problem.softmax_scale = 1.0;
    OwnedInputs inputs = normal_inputs(problem, 1);
    inputs.q.elements[0] = 1;
    const Tile tile{.block_q = 1, .block_kv = 8};
    const auto rescales = [&](double direction) {
      for (std::size_t j = 0; j < 64; ++j) {
        inputs.k.elements[j] = direction * static_cast<double>(j);
      }
      return run_numeric(flash2_program(), problem, tile, inputs.view(), sequence(problem, 0), 0,
                         NumberFormat::fp64)
          .rescales.done;
    };
    CHECK(rescales(1) == 7);  // every block after the first
    CHECK(rescales(-1) == 0);
  }
}

}  // namespace flashbound
