// The numeric machine: what a program computes in a chosen arithmetic, tile by tile.
#pragma once

#include "core/number_format.hpp"
#include "core/numeric_events.hpp"
#include "core/problem.hpp"
#include "core/program.hpp"
#include "core/recipe.hpp"
#include "core/tensor.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flashbound {

// One output of one head: `values` is rows x cols, row-major; exact in fp64 whatever the
// arithmetic.
struct HeadTensor {
  std::string name;
  Index rows = 0;
  Index cols = 0;
  std::vector<double> values;

  double operator()(Index row, Index col) const {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
};

struct NumericRun {
  std::vector<HeadTensor> outputs;  // those tensors that the program declares as outputs
  RescaleCount rescales{};          // rows that had seen a key, at every update of their maximum
  RangeEvents range{};              // none are counted in the recipes fp64 and fp32
  double log_weight_offset = 0;     // ln of what row sums carry beyond the sum of exp(s - m)

  // nullptr when the program has no such output.
  const HeadTensor* find(std::string_view name) const;
  // The natural-log lse of a row: the program's own, or row_max + log(row_sum) where it keeps those
  // (flash1); nullopt where it keeps neither.
  std::optional<double> lse(Index row) const;
  // Whether lse() has values, for rows or none.
  bool keeps_lse() const;
};

// What a backward program reads beside Q, K and V, for one query head: grad_o, and of o, lse,
// row_max, row_sum and p what the forward pass left. Named as the programs name their inputs.
struct BackwardInputs {
  std::vector<HeadTensor> tensors;

  // nullptr when it has no such tensor.
  const HeadTensor* find(std::string_view name) const;
};

// Runs `program` on query head `head` of `sequence` in the arithmetic of `recipe`. Inputs are those
// of rounded_inputs() (core/quantization.hpp); any others are rounded to its format on the way in.
// `seed` is that of stochastic rounding. In the recipes fp64 and fp32 sums within a matrix product
// are in no promised order, so that results are compared through core/error_bound.hpp.
NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const Sequence& sequence, Index head,
                       const Recipe& recipe, std::uint64_t seed = 0);
// In uniform_recipe(format).
NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const Sequence& sequence, Index head,
                       NumberFormat format);
// The same for a backward program, whose outputs are grad_q, grad_k and grad_v: one query head's,
// which a group has yet to add up. What the forward pass left is rounded to the formats that the
// recipe stores it in. Throws ConfigError when `backward` lacks an input or its shape is another,
// for a softcap that the program knows nothing about (standard-backward), and for a recipe whose
// weights have an offset.
NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const BackwardInputs& backward,
                       const Sequence& sequence, Index head, const Recipe& recipe,
                       std::uint64_t seed = 0);
NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const BackwardInputs& backward,
                       const Sequence& sequence, Index head, NumberFormat format);

}  // namespace flashbound
