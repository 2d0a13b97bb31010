// The numeric machine: what a program computes in a chosen arithmetic, tile by tile.
#pragma once

#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/program.hpp"
#include "core/tensor.hpp"

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
  Index rescales = 0;               // rows whose maximum moved after they had seen a key

  // nullptr when the program has no such output.
  const HeadTensor* find(std::string_view name) const;
  // The natural-log lse of a row: the program's own, or row_max + log(row_sum) where it keeps those
  // (flash1); nullopt where it keeps neither.
  std::optional<double> lse(Index row) const;
};

// What a backward program reads beside Q, K and V, for one query head: grad_o, and of o, lse,
// row_max, row_sum and p what the forward pass left. Named as the programs name their inputs.
struct BackwardInputs {
  std::vector<HeadTensor> tensors;

  // nullptr when it has no such tensor.
  const HeadTensor* find(std::string_view name) const;
};

// Runs `program` on query head `head` of `sequence`. Inputs are rounded to `format`, and every
// operation is done in it: fp64 or fp32 (others throw ConfigError). Sums within a matrix product
// are in no promised order, so that results are compared through core/error_bound.hpp.
NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const Sequence& sequence, Index head,
                       NumberFormat format);
// The same for a backward program, whose outputs are grad_q, grad_k and grad_v: one query head's,
// which a group has yet to add up. Throws ConfigError when `backward` lacks an input or its shape
// is another, and for a softcap that the program knows nothing about (standard-backward).
NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const BackwardInputs& backward,
                       const Sequence& sequence, Index head, NumberFormat format);

}  // namespace flashbound
