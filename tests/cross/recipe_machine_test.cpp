// The numeric machine under recipes, bit for bit against plain loops with exact operations.
#include "core/carriers.hpp"
#include "core/emulated_arithmetic.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "core/quantization.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/cross/recipe_oracle.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace flashbound {
namespace {

FloatFormat format(const char* text) { return parse_float_format("format", text); }

Recipe changed(std::string name, const char* base, void (*change)(Recipe&)) {
  Recipe recipe = recipe_named(base);
  recipe.name = std::move(name);
  change(recipe);
  validate(recipe);
  return recipe;
}

void set_orders(Recipe& r, SumOrder order) {
  r.scores_product.order = r.values_product.order = order;
  if (order == SumOrder::pairwise) r.row_sum = order;
}

// Formats that share nothing, so that each rounding shows.
void mix_formats(Recipe& r) {
  r.inputs = format("fp16");
  r.scores = format("m12e6");
  r.statistics = format("m9e7");
  r.probabilities = format("bf16");
  r.accumulator = format("m14e8");
  r.stored = format("m8e5");
  r.scores_product = {.product = format("m11e8"), .sum = format("m13e8")};
  r.values_product = {.sum = format("m15e8")};
  r.sum_of_rounded = false;
}

std::vector<Recipe> made_recipes() {
  return {
      changed("pairwise", "all-fp16", [](Recipe& r) { set_orders(r, SumOrder::pairwise); }),
      changed("pairwise-fused", "flash2-bf16",
              [](Recipe& r) { set_orders(r, SumOrder::pairwise); }),
      changed("tensor-core", "flash2-fp16",
              [](Recipe& r) {
                set_orders(r, SumOrder::tensor_core);
                r.scores_product.block = 4;
                r.values_product.block = 3;
                r.values_product.alignment_bits = 14;
              }),
      changed("toward-zero", "flash2-fp16", [](Recipe& r) { r.rounding = Rounding::toward_zero; }),
      changed("toward-zero-fp64", "all-m52", [](Recipe& r) { r.rounding = Rounding::toward_zero; }),
      changed("tau", "all-bf16",
              [](Recipe& r) {
                r.rescale = {RescaleRule::beyond_threshold, 1.5};
              }),
      changed("always", "all-m10", [](Recipe& r) { r.rescale.rule = RescaleRule::always; }),
      changed("offset", "pytorch-bf16", [](Recipe& r) { r.weight_offset_log2 = 8; }),
      changed("offset-hardware", "flash2-fp16", [](Recipe& r) { r.weight_offset_log2 = -3; }),
      changed("avoid-one", "all-bf16", [](Recipe& r) { r.shift = Shift::avoid_one; }),
      changed("avoid-one-factor", "all-fp8e4m3",
              [](Recipe& r) {
                r.shift = Shift::avoid_one;
                r.shift_factor = 2.3;
              }),
      changed("mixed", "all-fp16", mix_formats),
      changed("mixed-toward-zero", "all-fp16",
              [](Recipe& r) {
                mix_formats(r);
                r.rounding = Rounding::toward_zero;
              }),
      changed("polynomial", "all-fp16",
              [](Recipe& r) {
                r.exponential = {ExponentialKind::polynomial, 2};
              }),
      changed("scaled", "flash2-bf16",
              [](Recipe& r) {
                r.inputs = r.probabilities = format("fp8e4m3");
                r.quantization = {.scaling = Scaling::per_block, .block_q = 5, .block_kv = 3};
              }),
  };
}

struct Part {
  testing::RandomCase random;
  OwnedInputs inputs;
  Sequence at;
  Index head = 0;
};

// Small ones only: an exact operation takes a while.
std::vector<Part> parts(const Recipe& recipe, std::uint64_t first_seed, std::size_t count) {
  std::vector<Part> result;
  for (std::uint64_t seed = first_seed; result.size() < count; ++seed) {
    Part part{testing::random_case(seed), {}, {}, 0};
    const Problem& p = part.random.problem;
    part.at = sequence(p, static_cast<Index>(seed / 7) % sequence_count(p));
    part.head = static_cast<Index>(seed) % p.num_heads_q;
    if (part.at.seqlen_q * part.at.seqlen_kv > 260) continue;
    part.inputs = rounded_inputs(recipe, p, normal_inputs(p, seed).view(), seed);
    result.push_back(std::move(part));
  }
  return result;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

NumericRun run(const Program& program, const Recipe& recipe, const Part& part) {
  return run_numeric(program, part.random.problem, part.random.tile, part.inputs.view(), part.at,
                     part.head, recipe);
}

void check_rows(const NumericRun& got, const std::vector<testing::OracleRow>& expected,
                bool with_lse) {
  const HeadTensor& o = *got.find("o");
  REQUIRE(o.rows == static_cast<Index>(expected.size()));
  Index wrong = 0;
  for (Index row = 0; row < o.rows; ++row) {
    const testing::OracleRow& right = expected[static_cast<std::size_t>(row)];
    for (Index c = 0; c < o.cols; ++c) {
      wrong += same(o(row, c), right.o[static_cast<std::size_t>(c)]) ? 0 : 1;
    }
    if (with_lse) wrong += same(*got.lse(row), right.lse) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

void check_recipe(const Recipe& recipe, std::size_t count) {
  for (const Part& part : parts(recipe, 100, count)) {
    CAPTURE(recipe.name);
    CAPTURE(testing::describe(part.random));
    const Problem& p = part.random.problem;
    const Tile& tile = part.random.tile;
    const Inputs inputs = part.inputs.view();
    check_rows(run(flash2_program(), recipe, part),
               testing::flash2_oracle(recipe, p, tile, inputs, part.at, part.head), true);
    check_rows(run(standard_program(), recipe, part),
               testing::standard_oracle(recipe, p, tile, inputs, part.at, part.head), false);
  }
}

}  // namespace

TEST_SUITE("cross.recipe_machine") {
  TEST_CASE("flash2 and standard = plain loops in every named recipe") {
    for (const char* name : {"all-bf16", "all-fp16", "all-m10", "all-fp32", "all-tf32", "all-m51",
                             "all-m52", "all-fp8e5m2", "flash2-bf16", "flash2-fp16", "flash3-fp16",
                             "flash4-bf16", "pytorch-bf16", "pytorch-fp16"}) {
      check_recipe(recipe_named(name), 12);
    }
  }

  TEST_CASE("flash2 and standard = plain loops in hand-made recipes") {
    for (const Recipe& recipe : made_recipes()) check_recipe(recipe, 12);
  }

  TEST_CASE("float carries uniform recipes of 16 bits and fp32 around narrow operands") {
    for (const char* name : {"all-bf16", "all-fp16", "all-fp32", "flash2-bf16", "flash3-fp16",
                             "flash4-bf16", "pytorch-fp16"}) {
      CAPTURE(name);
      CHECK(float_carries(recipe_named(name)));
    }
    for (const char* name : {"all-m10", "all-tf32", "all-m30", "flash3-fp8"}) {
      CAPTURE(name);
      CHECK_FALSE(float_carries(recipe_named(name)));
    }
    for (const Recipe& recipe : made_recipes()) {
      CAPTURE(recipe.name);
      if (recipe.rounding != Rounding::nearest_even) CHECK_FALSE(float_carries(recipe));
      if (recipe.name == "mixed" || recipe.name == "scaled") CHECK_FALSE(float_carries(recipe));
    }
  }
}

}  // namespace flashbound
