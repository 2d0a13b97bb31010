#include "core/rounding_model.hpp"

#include "core/errors.hpp"
#include "core/exponential.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace flashbound {
namespace {

// fp64's library errors, in units of its u, before a result is rounded to a narrower format.
constexpr double kExpError = 2;
constexpr double kLogError = 2;
constexpr double kTanhError = 6;

FormatModel model_of(const FloatFormat& format, Rounding rounding) {
  const double nearest = flashbound::unit_roundoff(format);
  return {.unit_roundoff = rounding == Rounding::nearest_even ? nearest : 2 * nearest,
          .underflow =
              format.subnormals ? smallest_positive(format) : flashbound::smallest_normal(format),
          .smallest_normal = flashbound::smallest_normal(format),
          .largest = format.largest};
}

SumModel model_of(const Accumulation& how, Rounding rounding, Index tile_terms) {
  SumModel model{.sum = model_of(how.sum, rounding)};
  if (how.product) model.product = model_of(*how.product, rounding);
  switch (how.order) {
    case SumOrder::any:
    case SumOrder::sequential: break;
    case SumOrder::pairwise:
      model.depth = std::ceil(std::log2(static_cast<double>(std::max<Index>(tile_terms, 2))));
      if (!how.product) model.product = model.sum;
      break;
    case SumOrder::tensor_core:
      // Each of block + 1 numbers loses less than one unit of the last bit kept; the largest has
      // its exponent. The sum is rounded toward zero.
      model.block = how.block;
      model.cut = std::ldexp(static_cast<double>(how.block + 1), 1 - how.alignment_bits);
      model.sum = model_of(how.sum, Rounding::toward_zero);
      break;
  }
  return model;
}

bool has_scores_in_hbm(const Program& program) {
  return std::any_of(program.tensors.begin(), program.tensors.end(), [](const TensorDecl& t) {
    return t.role == TensorRole::intermediate && t.axes.size() == 2 && t.axes[1] == Axis::key;
  });
}

bool has(const std::vector<Statement>& body, Op op, int tensor) {
  return std::any_of(body.begin(), body.end(), [&](const Statement& s) {
    return (s.op == op && s.tensor == tensor) || has(s.body, op, tensor);
  });
}

// One kernel that stores a tensor and loads it again has used it in between (small-cache).
bool stores_and_loads_scores(const Program& program) {
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const TensorDecl& tensor = program.tensors[t];
    if (tensor.role != TensorRole::intermediate || tensor.axes.back() != Axis::key) continue;
    for (const Statement& kernel : program.body) {
      const int index = static_cast<int>(t);
      if (has(kernel.body, Op::store, index) && has(kernel.body, Op::load, index)) return true;
    }
  }
  return false;
}

bool loads_output(const Program& program, const std::vector<Statement>& body) {
  return std::any_of(body.begin(), body.end(), [&](const Statement& s) {
    const bool load =
        s.op == Op::load &&
        program.tensors[static_cast<std::size_t>(s.tensor)].role == TensorRole::output;
    return load || loads_output(program, s.body);
  });
}

// The library's error, then one rounding to a format unless that is fp64 itself.
double then_rounded(double library_error, const FormatModel& format) {
  const double u64 = flashbound::unit_roundoff(NumberFormat::fp64);
  return format.unit_roundoff <= u64 ? std::max(library_error, format.unit_roundoff)
                                     : library_error * 1.01 + format.unit_roundoff;
}

void set_functions(RoundingModel& model, const Recipe& recipe) {
  const double u64 = flashbound::unit_roundoff(NumberFormat::fp64);
  const FormatModel& weight = recipe.sum_of_rounded ? model.probabilities : model.scores;
  // exp_rounded() rounds once; stochastic rounding begins with the library's value.
  model.weight_error = then_rounded(kExpError * u64, weight);
  model.factor_error = then_rounded(kExpError * u64, model.statistics);
  model.log_error = then_rounded(kLogError * u64, model.statistics);
  model.tanh_error = then_rounded(kTanhError * u64, model.scores);
  model.offset = recipe.weight_offset_log2 * std::numbers::ln2;
  model.threshold = recipe.rescale.threshold_log2 * std::numbers::ln2;
  const double scale = std::exp2(-recipe.weight_offset_log2);
  model.weight_underflow = weight.underflow * scale;
  model.factor_underflow = model.statistics.underflow;
  model.weight_largest = weight.largest;
  if (recipe.exponential.kind == ExponentialKind::correctly_rounded) return;
  model.base_two = true;
  model.argument_roundings = 3;                             // log2 e, the difference, the product
  model.weight_underflow = weight.smallest_normal * scale;  // flushed
  model.factor_underflow = model.statistics.smallest_normal;
  if (recipe.exponential.kind == ExponentialKind::polynomial) {
    // Horner's rule with positive terms rounds each at most `degree` times; the fraction once.
    const int degree = recipe.exponential.degree;
    model.weight_error += 1.01 * exp2_polynomial_error(degree) +
                          (degree + 2) * flashbound::unit_roundoff(NumberFormat::fp32);
    // It works in the range of fp32.
    const FormatModel fp32 = model_of(float_format(NumberFormat::fp32), recipe.rounding);
    model.weight_underflow = std::max(model.weight_underflow, fp32.smallest_normal * scale);
    model.weight_largest = std::min(model.weight_largest, fp32.largest / 2);
  }
}

// The C library's functions of a native format.
void set_native_functions(RoundingModel& model, double u) {
  model.weight_error = model.factor_error = kExpError * u;
  model.log_error = kLogError * u;
  model.tanh_error = kTanhError * u;
}

RoundingModel recipe_rounding(const Recipe& recipe, const Tile& tile, Index head_dim) {
  RoundingModel model;
  model.scores = model_of(recipe.scores, recipe.rounding);
  model.statistics = model_of(recipe.statistics, recipe.rounding);
  model.probabilities = model_of(recipe.probabilities, recipe.rounding);
  model.accumulator = model_of(recipe.accumulator, recipe.rounding);
  model.stored = model_of(recipe.stored, recipe.rounding);
  model.scores_product = model_of(recipe.scores_product, recipe.rounding, head_dim);
  model.values_product = model_of(recipe.values_product, recipe.rounding, tile.block_kv);
  model.rounded_operands = !recipe.sum_of_rounded;
  if (recipe.stored == recipe.accumulator) model.stored.unit_roundoff = model.stored.underflow = 0;
  set_functions(model, recipe);
  if (recipe.values_product.order == SumOrder::any) {
    set_native_functions(model, model.scores.unit_roundoff);
  }
  return model;
}

// A row is folded once a block of keys and merged once a block or a split.
Index updates(const Schedule& schedule) {
  return 2 * schedule.kv_block_count() + schedule.tile.num_splits;
}

}  // namespace

RoundingModel reference_rounding() {
  return recipe_rounding(uniform_recipe(NumberFormat::fp64), {}, 1);
}

std::optional<RoundingModel> program_rounding(const Recipe& recipe, const Program& program,
                                              const Schedule& schedule) {
  if (recipe.shift != Shift::maximum) return std::nullopt;
  if (recipe.statistics.significand_bits < recipe.scores.significand_bits) return std::nullopt;
  // A polynomial takes its argument in fp32.
  const bool polynomial = recipe.exponential.kind == ExponentialKind::polynomial;
  if (polynomial && recipe.scores.significand_bits > 24) return std::nullopt;
  const Index head_dim = schedule.shape.head_dim;
  RoundingModel model = recipe_rounding(recipe, schedule.tile, head_dim);
  model.scores_stored = has_scores_in_hbm(program) && recipe.stored != recipe.scores;
  model.weights_normalised = has_scores_in_hbm(program);
  // They are operands once more after their division.
  if (model.weights_normalised) model.rounded_operands = true;
  const bool drawn_twice = model.weights_normalised && recipe.rounding == Rounding::stochastic;
  model.sum_of_other_scores =
      drawn_twice || (model.scores_stored && stores_and_loads_scores(program));
  model.output_reloaded = loads_output(program, program.body);
  model.updates = updates(schedule);
  if (recipe.values_product.sum != recipe.accumulator) {
    model.accumulator_roundings = model.updates;
  }
  if (recipe.scores_product.sum != recipe.scores) {
    model.score_roundings = Partition{head_dim, std::max<Index>(schedule.tile.panel, 1)}.count();
  }
  return model;
}

RoundingModel program_rounding(NumberFormat format, const Schedule& schedule) {
  if (format != NumberFormat::fp64 && format != NumberFormat::fp32) {
    reject("arithmetic", std::string(name(format)), "fp64 or fp32");
  }
  RoundingModel model =
      recipe_rounding(uniform_recipe(format), schedule.tile, schedule.shape.head_dim);
  model.output_reloaded = true;
  model.updates = updates(schedule);
  return model;
}

}  // namespace flashbound
