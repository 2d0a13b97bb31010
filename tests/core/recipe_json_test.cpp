// Recipes as text: what is written is read back, and what is wrong is named.
#include "core/errors.hpp"
#include "core/recipe.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace flashbound {
namespace {

// What recipe_from_json says of a text, or nothing.
std::string error_of(const std::string& text) {
  try {
    static_cast<void>(recipe_from_json(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// A recipe from a base with one field changed.
std::string with(const std::string& base, const std::string& field) {
  return R"({"name": "mine", "base": ")" + base + "\", " + field + "}";
}

// One error that holds field, value and what is allowed.
void check_error(const std::string& text, const std::vector<std::string>& parts) {
  const std::string error = error_of(text);
  CAPTURE(text);
  CAPTURE(error);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(error.find(part) != std::string::npos);
  }
}

// Every field differs from its default.
Recipe unusual_recipe() {
  Recipe recipe = uniform_recipe("unusual", parse_float_format("format", "m6e7/saturate"));
  recipe.inputs = parse_float_format("format", "fp8e5m2/nan");
  recipe.scores = parse_float_format("format", "m12");
  recipe.statistics = parse_float_format("format", "fp32/flush");
  recipe.probabilities = parse_float_format("format", "fp8e4m3/infinity");
  recipe.accumulator = parse_float_format("format", "m20e8");
  recipe.stored = parse_float_format("format", "tf32");
  recipe.scores_product = {std::nullopt, recipe.accumulator, SumOrder::tensor_core, 7, 19};
  recipe.values_product = {recipe.scores, recipe.statistics, SumOrder::pairwise, 3, 48};
  recipe.row_sum = SumOrder::pairwise;
  recipe.sum_of_rounded = false;
  recipe.exponential = {ExponentialKind::polynomial, 5};
  recipe.rescale = {RescaleRule::beyond_threshold, 2.5};
  recipe.shift = Shift::avoid_one;
  recipe.shift_factor = 2.25;
  recipe.weight_offset_log2 = -4;
  recipe.rounding = Rounding::stochastic;
  recipe.quantization = {Scaling::per_tensor, 5, 9, true};
  return recipe;
}

}  // namespace

TEST_SUITE("core.recipe_json") {
  TEST_CASE("every named recipe and every uniform one come back from their text") {
    for (const NamedRecipe& entry : recipes()) {
      CAPTURE(std::string(entry.name));
      const Recipe recipe = recipe_named(entry.name);
      CHECK(recipe.name == entry.name);
      CHECK_NOTHROW(validate(recipe));
      CHECK(recipe_from_json(to_json(recipe)) == recipe);
    }
    for (const char* name : {"all-fp16", "all-m10", "all-m52", "all-m3e4", "all-bf16/flush"}) {
      CAPTURE(name);
      const Recipe recipe = recipe_named(name);
      CHECK(recipe_from_json(to_json(recipe)) == recipe);
    }
  }

  TEST_CASE("every field comes back") {
    const Recipe recipe = unusual_recipe();
    CHECK(recipe_from_json(to_json(recipe)) == recipe);
    CHECK(to_json(recipe_from_json(to_json(recipe))) == to_json(recipe));
  }

  TEST_CASE("a base lends all fields that the text does not change") {
    Recipe expected = recipe_named("flash4-bf16");
    expected.name = "mine";
    expected.rescale.threshold_log2 = 4;
    CHECK(recipe_from_json(with("flash4-bf16", R"("rescale": {"threshold_log2": 4})")) == expected);
    expected = recipe_named("all-m10");
    expected.name = "mine";
    expected.scores_product.product.reset();
    CHECK(recipe_from_json(with("all-m10", R"("scores_product": {"product": "exact"})")) ==
          expected);
  }

  TEST_CASE("what is not a recipe is refused") {
    check_error("{", {"recipe", "JSON"});
    check_error("[1]", {"recipe", "[1]", "an object"});
    check_error("{}", {"recipe name", "given"});
    check_error(R"({"base": "flash2-bf16"})", {"recipe name", "given"});
    check_error(R"({"name": "x", "base": 3})", {"recipe base", "3", "the name of a recipe"});
    check_error(with("flash9", R"("shift": "maximum")"), {"flash9", "flash2-bf16", "all-FORMAT"});
    CHECK_THROWS_AS(recipe_named("flash9"), ConfigError);
    CHECK_THROWS_AS(recipe_named("all-fp9"), ConfigError);
  }

  TEST_CASE("unknown fields are named with the known ones") {
    check_error(with("fp64", R"("inputz": "fp16")"), {"recipe field", "inputz", "inputs"});
    check_error(with("all-fp16", R"("rescale": {"tau": 8})"),
                {"recipe rescale field", "tau", "rule", "threshold_log2"});
    check_error(with("all-fp16", R"("scores_product": {"blocks": 8})"),
                {"recipe scores_product field", "blocks", "block"});
  }

  TEST_CASE("wrong types and unknown names are named with what is allowed") {
    check_error(with("all-fp16", R"("inputs": 16)"), {"recipe inputs", "16", "a text"});
    check_error(with("all-fp16", R"("inputs": "fp17")"), {"recipe inputs", "fp17", "bf16"});
    check_error(with("all-fp16", R"("scores_product": {"product": "fp17"})"),
                {"recipe scores_product product", "fp17", "bf16", "exact"});
    check_error(with("all-fp16", R"("scores_product": {"product": null})"),
                {"recipe scores_product product", "null", "exact"});
    check_error(with("all-fp16", R"("rescale": 8)"), {"recipe rescale", "8", "an object"});
    check_error(with("all-fp16", R"("rescale": {"rule": "never"})"),
                {"recipe rescale rule", "never", "always", "beyond_threshold"});
    check_error(with("all-fp16", R"("rounding": "nearest-even")"),
                {"recipe rounding", "nearest-even", "nearest_even", "stochastic"});
    check_error(with("all-fp16", R"("shift": 1)"), {"recipe shift", "1", "avoid_one"});
    check_error(with("all-fp16", R"("sum_of_rounded": 1)"),
                {"recipe sum_of_rounded", "1", "true or false"});
    check_error(with("all-fp16", R"("shift_factor": "7")"), {"recipe shift_factor", "a number"});
    check_error(with("all-fp16", R"("exponential": {"degree": 2.5})"),
                {"recipe exponential degree", "2.5", "a whole number"});
    check_error(with("all-fp16", R"("quantization": {"block_q": 1e300})"),
                {"recipe quantization block_q", "1e+300", "a whole number"});
    check_error(with("all-fp16", R"("quantization": {"block_q": 18446744073709551615})"),
                {"recipe quantization block_q", "18446744073709551615", "a whole number"});
    check_error(R"({"name": 3})", {"recipe name", "3", "a text"});
  }

  TEST_CASE("sums in any order belong to fp64 and fp32 alone") {
    const std::string order = R"("scores_product": {"order": "any"})";
    for (const char* base : {"all-bf16", "flash2-bf16", "all-m52"}) {
      check_error(with(base, order), {"recipe order", "any", "sequential", "fp64 and fp32"});
    }
    check_error(with("fp32", R"("stored": "fp16")"), {"recipe order", "any", "sequential"});
    check_error(with("fp64", R"("rounding": "toward_zero")"), {"recipe order", "any"});
    check_error(with("fp64", R"("row_sum": "pairwise")"), {"recipe order", "any"});
    CHECK(error_of(with("fp32", R"("shift": "maximum")")).empty());
  }

  TEST_CASE("values out of range are named with the range") {
    const std::string base = "flash3-fp16";
    check_error(with(base, R"("scores_product": {"block": 0})"),
                {"recipe scores_product.block", "0", "1..1024"});
    check_error(with(base, R"("values_product": {"block": 1025})"),
                {"recipe values_product.block", "1025", "1..1024"});
    check_error(with(base, R"("values_product": {"alignment_bits": 49})"),
                {"recipe values_product.alignment_bits", "49", "2..48"});
    check_error(with(base, R"("row_sum": "tensor_core")"),
                {"recipe row_sum", "tensor_core", "sequential or pairwise"});
    check_error(with(base, R"("exponential": {"degree": 6})"),
                {"recipe exponential.degree", "6", "1..5"});
    check_error(with(base, R"("rescale": {"threshold_log2": 3})"),
                {"recipe rescale.threshold_log2", "3", "0 unless"});
    check_error(with(base, R"("rescale": {"rule": "beyond_threshold", "threshold_log2": -1})"),
                {"recipe rescale.threshold_log2", "-1", "0"});
    check_error(with(base, R"("weight_offset_log2": 1001)"),
                {"recipe weight_offset_log2", "1001", "1000"});
    check_error(with(base, R"("shift_factor": 0.5)"), {"recipe shift_factor", "0.5", "1"});
    check_error(with(base, R"("quantization": {"block_kv": 0})"),
                {"recipe quantization.block_kv", "0", "positive"});
  }

  TEST_CASE("what the machine cannot compute exactly is refused") {
    check_error(with("flash3-fp16", R"("inputs": "m26")"),
                {"recipe scores_product.order", "tensor_core", "53 bits"});
    check_error(with("flash3-fp16", R"("inputs": "fp32", "probabilities": "m30")"),
                {"recipe values_product.order", "tensor_core", "53 bits"});
    check_error(with("flash2-bf16", R"("inputs": "m10", "quantization": {"scaling": "per_block"})"),
                {"recipe inputs", "m10", "where scaled"});
    check_error(R"({"name": "a", "scores": "bf16", "scores": "fp16"})", {"scores", "given twice"});
    check_error(R"({"name": )" + std::string(200000, '[') + std::string(200000, ']') + "}",
                {"recipe", "nested more than 64 deep"});
    Recipe recipe = recipe_named("all-fp16");
    recipe.stored = FloatFormat{};  // with no numbers but zero
    CHECK_THROWS_AS(validate(recipe), ConfigError);
  }
}

}  // namespace flashbound
