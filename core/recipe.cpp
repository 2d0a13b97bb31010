#include "core/recipe.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace flashbound {
namespace {

constexpr std::string_view kUniformPrefix = "all-";

Accumulation all_in(const FloatFormat& format) { return {.product = format, .sum = format}; }

// 16-bit operands, fp32 for what happens between products, as every published kernel does it.
Recipe mixed(std::string name, NumberFormat operands) {
  const FloatFormat narrow = float_format(operands);
  const FloatFormat fp32 = float_format(NumberFormat::fp32);
  Recipe recipe{.name = std::move(name)};
  recipe.inputs = recipe.probabilities = recipe.stored = narrow;
  recipe.scores = recipe.statistics = recipe.accumulator = fp32;
  recipe.scores_product.sum = recipe.values_product.sum = fp32;
  return recipe;
}

// Of Hopper for 16-bit operands: 16 products at once, 25 bits kept.
void use_tensor_cores(Recipe& recipe, Index block, int alignment_bits) {
  for (Accumulation* product : {&recipe.scores_product, &recipe.values_product}) {
    product->order = SumOrder::tensor_core;
    product->block = block;
    product->alignment_bits = alignment_bits;
  }
}

Recipe fp64_recipe() { return uniform_recipe(NumberFormat::fp64); }
Recipe fp32_recipe() { return uniform_recipe(NumberFormat::fp32); }
Recipe all_bf16_recipe() { return uniform_recipe(NumberFormat::bf16); }
Recipe pytorch_bf16_recipe() { return mixed("pytorch-bf16", NumberFormat::bf16); }
Recipe pytorch_fp16_recipe() { return mixed("pytorch-fp16", NumberFormat::fp16); }

Recipe flash2_recipe(std::string name, NumberFormat operands) {
  Recipe recipe = mixed(std::move(name), operands);
  recipe.exponential.kind = ExponentialKind::hardware;
  return recipe;
}
Recipe flash2_bf16_recipe() { return flash2_recipe("flash2-bf16", NumberFormat::bf16); }
Recipe flash2_fp16_recipe() { return flash2_recipe("flash2-fp16", NumberFormat::fp16); }

Recipe flash3_fp16_recipe() {
  Recipe recipe = flash2_recipe("flash3-fp16", NumberFormat::fp16);
  use_tensor_cores(recipe, 16, 25);
  return recipe;
}

Recipe flash3_fp8_recipe() {
  Recipe recipe = flash2_recipe("flash3-fp8", NumberFormat::fp8e4m3);
  recipe.stored = float_format(NumberFormat::fp16);
  // fp8 products of Hopper: 32 at once, 14 bits kept.
  use_tensor_cores(recipe, 32, 14);
  recipe.weight_offset_log2 = 8;
  recipe.quantization = {.scaling = Scaling::per_block, .rotated = true};
  return recipe;
}

Recipe flash4_bf16_recipe() {
  Recipe recipe = flash2_recipe("flash4-bf16", NumberFormat::bf16);
  recipe.exponential = {.kind = ExponentialKind::polynomial, .degree = 3};
  recipe.rescale = {.rule = RescaleRule::beyond_threshold, .threshold_log2 = 8};
  return recipe;
}

constexpr std::array<NamedRecipe, 10> kRecipes{{
    {"fp64", "fp64 throughout, sums in any order", fp64_recipe},
    {"fp32", "fp32 throughout, sums in any order", fp32_recipe},
    {"all-bf16", "every operation rounded to bf16 (all-FORMAT: to any format)", all_bf16_recipe},
    {"pytorch-bf16", "bf16 operands and results, fp32 between (unfused: --algorithm standard)",
     pytorch_bf16_recipe},
    {"pytorch-fp16", "the same with fp16", pytorch_fp16_recipe},
    {"flash2-bf16", "FlashAttention-2 (arXiv 2307.08691): fp32 scores, statistics and sums, exp2",
     flash2_bf16_recipe},
    {"flash2-fp16", "the same with fp16", flash2_fp16_recipe},
    {"flash3-fp16", "FlashAttention-3 (arXiv 2407.08608): tensor-core sums", flash3_fp16_recipe},
    {"flash3-fp8", "the same in fp8e4m3: block scales, rotated Q and K, weights up to 2^8",
     flash3_fp8_recipe},
    {"flash4-bf16", "FlashAttention-4 (arXiv 2603.05451): cubic exp2, rescaling beyond 2^8",
     flash4_bf16_recipe},
}};

// Sums in any order are a library's, which knows two arithmetics and rounds to nearest.
void validate_any_order(const Recipe& r) {
  const bool any = r.scores_product.order == SumOrder::any ||
                   r.values_product.order == SumOrder::any || r.row_sum == SumOrder::any;
  if (!any) return;
  Recipe plain = r;
  plain.name.clear();
  for (const NumberFormat format : {NumberFormat::fp64, NumberFormat::fp32}) {
    Recipe allowed = uniform_recipe(format);
    allowed.name.clear();
    if (plain == allowed) return;
  }
  reject("recipe order", "any",
         "sequential, pairwise or tensor-core except in the recipes fp64 and fp32");
}

void validate_sum(const char* field, const Accumulation& product) {
  const std::string name = std::string("recipe ") + field;
  if (product.block < 1 || product.block > 1024) {
    reject(name + ".block", std::to_string(product.block), "1..1024");
  }
  if (product.alignment_bits < 2 || product.alignment_bits > 48) {
    reject(name + ".alignment_bits", std::to_string(product.alignment_bits), "2..48");
  }
}

// Products of tensor cores are exact, and computed in fp64.
void validate_exact_products(const Recipe& r, const char* field, const Accumulation& product,
                             const FloatFormat& weights) {
  if (product.order != SumOrder::tensor_core || product.product) return;
  const int bits = r.inputs.significand_bits + scale_bits(r.quantization);
  if (bits + std::max(bits, weights.significand_bits) <= 53) return;
  reject(std::string("recipe ") + field + ".order", "tensor_core",
         "another one where products of operands exceed 53 bits");
}

void validate_formats(const Recipe& r) {
  const auto check = [](const char* field, const FloatFormat& format) {
    try {
      static_cast<void>(to_string(format));
    } catch (const ConfigError&) {
      reject(std::string("recipe ") + field,
             std::to_string(format.significand_bits) + " significand bits up to " +
                 std::to_string(format.largest),
             "a format that parse_float_format makes");
    }
  };
  check("inputs", r.inputs);
  check("scores", r.scores);
  check("statistics", r.statistics);
  check("probabilities", r.probabilities);
  check("accumulator", r.accumulator);
  check("stored", r.stored);
  check("scores_product.sum", r.scores_product.sum);
  check("values_product.sum", r.values_product.sum);
  if (r.scores_product.product) check("scores_product.product", *r.scores_product.product);
  if (r.values_product.product) check("values_product.product", *r.values_product.product);
}

// A scaled number is exact in fp64, and so is its scale.
void validate_quantization(const Recipe& r) {
  for (const auto& [field, rows] : {std::pair{"block_q", r.quantization.block_q},
                                    std::pair{"block_kv", r.quantization.block_kv}}) {
    if (rows < 1) {
      reject(std::string("recipe quantization.") + field, std::to_string(rows), "positive");
    }
  }
  const FloatFormat fp32 = float_format(NumberFormat::fp32);
  if (r.quantization.scaling != Scaling::none && r.inputs.largest > fp32.largest) {
    reject("recipe inputs", to_string(r.inputs), "no wider in range than fp32 where scaled");
  }
  if (r.quantization.scaling != Scaling::none && r.inputs.significand_bits > 24) {
    reject("recipe inputs", to_string(r.inputs), "no wider than fp32 where scaled");
  }
}

void require_within(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return;
  reject(std::string("recipe ") + field, std::to_string(value),
         std::to_string(low) + " to " + std::to_string(high));
}

}  // namespace

Recipe uniform_recipe(std::string name, const FloatFormat& format) {
  Recipe recipe{.name = std::move(name)};
  recipe.inputs = recipe.scores = recipe.statistics = recipe.probabilities = recipe.accumulator =
      recipe.stored = format;
  recipe.scores_product = recipe.values_product = all_in(format);
  recipe.sum_of_rounded = true;
  return recipe;
}

Recipe uniform_recipe(NumberFormat format) {
  const bool native = format == NumberFormat::fp64 || format == NumberFormat::fp32;
  const std::string own(flashbound::name(format));
  Recipe recipe =
      uniform_recipe(native ? own : std::string(kUniformPrefix) + own, float_format(format));
  if (native) {
    recipe.scores_product.order = recipe.values_product.order = recipe.row_sum = SumOrder::any;
  }
  return recipe;
}

std::span<const NamedRecipe> recipes() { return kRecipes; }

Recipe recipe_named(std::string_view name) {
  std::string names;
  for (const NamedRecipe& entry : kRecipes) {
    if (entry.name == name) return entry.recipe();
    names += std::string(entry.name) + ", ";
  }
  if (name.starts_with(kUniformPrefix)) {
    return uniform_recipe(std::string(name),
                          parse_float_format("recipe", name.substr(kUniformPrefix.size())));
  }
  reject("recipe", std::string(name),
         "a file that ends in .json, or one of " + names + "all-FORMAT");
}

void validate(const Recipe& r) {
  validate_formats(r);
  validate_any_order(r);
  validate_sum("scores_product", r.scores_product);
  validate_sum("values_product", r.values_product);
  validate_exact_products(r, "scores_product", r.scores_product, r.inputs);
  validate_exact_products(r, "values_product", r.values_product, r.probabilities);
  if (r.row_sum == SumOrder::tensor_core) {
    reject("recipe row_sum", "tensor_core", "sequential or pairwise");
  }
  if (r.exponential.degree < 1 || r.exponential.degree > 5) {
    reject("recipe exponential.degree", std::to_string(r.exponential.degree), "1..5");
  }
  require_within("rescale.threshold_log2", r.rescale.threshold_log2, 0, 1000);
  require_within("weight_offset_log2", r.weight_offset_log2, -1000, 1000);
  require_within("shift_factor", r.shift_factor, 1, 1000);
  if (r.rescale.rule != RescaleRule::beyond_threshold && r.rescale.threshold_log2 != 0) {
    reject("recipe rescale.threshold_log2", std::to_string(r.rescale.threshold_log2),
           "0 unless the rule is beyond_threshold");
  }
  validate_quantization(r);
}

int scale_bits(const Quantization& quantization) {
  return quantization.scaling == Scaling::none ? 0 : kScaleBits;
}

}  // namespace flashbound
