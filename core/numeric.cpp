#include "core/numeric.hpp"

#include "core/carriers.hpp"
#include "core/emulated_arithmetic.hpp"
#include "core/errors.hpp"
#include "core/numeric_machine.hpp"
#include "core/plain_arithmetic.hpp"

#include <cmath>
#include <string>

namespace flashbound {
namespace {

template <class Arithmetic>
NumericRun run(Arithmetic& arithmetic, const Program& program, const Problem& problem,
               const Tile& tile, const Inputs& inputs, const BackwardInputs& backward,
               const Sequence& sequence, Index head) {
  const Schedule schedule = schedule_for(problem, tile, sequence);
  const auto operands = rounded(Head(problem, inputs, sequence, head), backward, arithmetic);
  return NumericMachine<Arithmetic>(program, schedule, operands, arithmetic).run();
}

}  // namespace

const HeadTensor* NumericRun::find(std::string_view name) const {
  for (const HeadTensor& output : outputs) {
    if (output.name == name) return &output;
  }
  return nullptr;
}

bool NumericRun::keeps_lse() const {
  return find("lse") != nullptr || (find("row_max") != nullptr && find("row_sum") != nullptr);
}

std::optional<double> NumericRun::lse(Index row) const {
  if (!keeps_lse()) return std::nullopt;
  if (const HeadTensor* own = find("lse")) return (*own)(row, 0);
  return (*find("row_max"))(row, 0) + std::log((*find("row_sum"))(row, 0)) - log_weight_offset;
}

NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const BackwardInputs& backward,
                       const Sequence& sequence, Index head, const Recipe& recipe,
                       std::uint64_t seed) {
  validate(recipe);
  if (!backward.tensors.empty() && recipe.weight_offset_log2 != 0) {
    reject("recipe weight_offset_log2", std::to_string(recipe.weight_offset_log2),
           "0 in a backward pass, whose weights are not divided by their sum");
  }
  const auto with = [&](auto&& arithmetic) {
    return run(arithmetic, program, problem, tile, inputs, backward, sequence, head);
  };
  if (recipe.values_product.order == SumOrder::any) {
    const bool fp32 = recipe.inputs == float_format(NumberFormat::fp32);
    return fp32 ? with(PlainArithmetic<float>()) : with(PlainArithmetic<double>());
  }
  if (float_carries(recipe)) return with(EmulatedArithmetic<float>(recipe, seed));
  return with(EmulatedArithmetic<double>(recipe, seed));
}

NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const Sequence& sequence, Index head,
                       const Recipe& recipe, std::uint64_t seed) {
  return run_numeric(program, problem, tile, inputs, {}, sequence, head, recipe, seed);
}

const HeadTensor* BackwardInputs::find(std::string_view name) const {
  for (const HeadTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const Sequence& sequence, Index head,
                       NumberFormat format) {
  return run_numeric(program, problem, tile, inputs, {}, sequence, head, uniform_recipe(format));
}

NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const BackwardInputs& backward,
                       const Sequence& sequence, Index head, NumberFormat format) {
  return run_numeric(program, problem, tile, inputs, backward, sequence, head,
                     uniform_recipe(format));
}

}  // namespace flashbound
