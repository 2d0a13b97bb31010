// The failure cases of other libraries in every recipe: whatever has a finite bound is right within
// it, and what has none is listed here. A recipe may fail there, as its kernel does.
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "tests/core/attention_cases.hpp"
#include "tests/cross/whole_output.hpp"

#include <doctest/doctest.h>

#include <string>

namespace flashbound {
namespace {

constexpr const char* kLongSums = "A34 A12 S-scale A4 A5 A7 A51 A38 A45 A52 A53";
// Of 40 to 100 blocks in the long cases.
constexpr Tile kTile{.block_q = 32, .block_kv = 48, .panel = 16, .num_splits = 3};

testing::Subject subject(const Program& program, const Recipe& recipe) {
  return {[&](const Problem& p, const Inputs& in) {
            return testing::whole_output(program, p, kTile, in, recipe);
          },
          [&](const HeadConditions& conditions, const Sequence&) {
            const Schedule schedule{conditions.shape, {}, kTile};
            return error_bound(conditions, program_rounding(recipe, program, schedule).value());
          },
          testing::Unbounded::is_free};
}

// Ids of the cases in which the recipe promises nothing about some finite element.
std::string unbounded_cases(const char* algorithm, const Recipe& recipe) {
  const Program program = algorithm_named(algorithm).program();
  const testing::Subject tested = subject(program, recipe);
  std::string ids;
  for (const testing::CaseEntry& entry : testing::attention_cases()) {
    Index unbounded = 0;
    for (const testing::AttentionCase& original : entry.build()) {
      const testing::AttentionCase c = testing::rounded_case(original, recipe);
      CAPTURE(entry.id);
      CAPTURE(entry.title);
      CAPTURE(recipe.name);
      for (const std::string& failure : failures(c, tested)) FAIL_CHECK(failure);
      unbounded += testing::unbounded_elements(c, tested);
    }
    if (unbounded > 0) ids += (ids.empty() ? "" : " ") + std::string(entry.id);
  }
  return ids;
}

// flash3-fp8 without its rotation, which not every head_dim has.
Recipe unrotated_fp8() {
  Recipe recipe = recipe_named("flash3-fp8");
  recipe.quantization.rotated = false;
  return recipe;
}

}  // namespace

TEST_SUITE("cross.recipe_cases") {
  TEST_CASE("flash2 survives every failure case in fp32") {
    CHECK(unbounded_cases("flash2", recipe_named("fp32")).empty());
  }
  TEST_CASE("flash2 with 16-bit operands and natural exponentials survives all but fp16 overflow") {
    CHECK(unbounded_cases("flash2", recipe_named("pytorch-bf16")).empty());
    CHECK(unbounded_cases("flash2", recipe_named("pytorch-fp16")) == "A26");
  }
  // A3: q k^T = 1.1e12, whose product with log2 e errs by more than the exponent's range.
  TEST_CASE("flash2 with fused base-two exponents survives all but huge scores") {
    CHECK(unbounded_cases("flash2", recipe_named("flash2-bf16")) == "A3");
    CHECK(unbounded_cases("flash2", recipe_named("flash4-bf16")) == "A3");
    CHECK(unbounded_cases("flash2", recipe_named("flash2-fp16")) == "A26");
    CHECK(unbounded_cases("flash2", recipe_named("flash3-fp16")) == "A26");
  }
  // A52: a sum that keeps 14 bits over 131072 keys.
  TEST_CASE("flash2 in fp8 survives all but huge scores and long sums") {
    CHECK(unbounded_cases("flash2", unrotated_fp8()) == "A3 A45 A52");
  }
  // Everything in bf16: sums of hundreds of terms have no bound below 1.
  TEST_CASE("flash2 all in bf16 is right where its bound is finite") {
    CHECK(unbounded_cases("flash2", recipe_named("all-bf16")) == kLongSums);
  }
}

// Minutes with sanitizers, which run the same code in the shorter ones.
TEST_SUITE("cross.recipe_cases_long") {
  TEST_CASE("other loop orders survive the failure cases in the same recipes") {
    CHECK(unbounded_cases("standard", recipe_named("flash2-bf16")) == "A3 A7");
    CHECK(unbounded_cases("flash1", recipe_named("flash2-bf16")) == "A3 A52");
    CHECK(unbounded_cases("split-kv", recipe_named("flash2-bf16")) == "A3");
    CHECK(unbounded_cases("standard", recipe_named("flash2-fp16")) == "A39 A26 S-scale");
    CHECK(unbounded_cases("flash1", recipe_named("flash2-fp16")) == "A26");
    CHECK(unbounded_cases("split-kv", recipe_named("flash2-fp16")) == "A26");
  }
  TEST_CASE("other loop orders all in bf16 are right where their bound is finite") {
    for (const char* algorithm : {"standard", "flash1", "split-kv"}) {
      CAPTURE(algorithm);
      CHECK(unbounded_cases(algorithm, recipe_named("all-bf16")) == kLongSums);
    }
  }
}

}  // namespace flashbound
