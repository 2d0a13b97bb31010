// What computed outputs are compared with.
#pragma once

#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/tensor.hpp"

#include <string_view>
#include <vector>

namespace flashbound {

enum class ReferenceKind { exact, fp64 };
std::string_view name(ReferenceKind kind);

// Whose exact answer it is: that of the inputs that the run begins with, or of the given ones.
enum class ReferenceInputs { rounded, unrounded };
std::string_view name(ReferenceInputs inputs);

struct ReferenceOutputs {
  Tensor<double> o;    // (batch, num_heads_q, seqlen_q, head_dim_v)
  Tensor<double> lse;  // (batch, num_heads_q, seqlen_q, 1)
  // Elements that the exact reference left open, as increasing indices into `elements`.
  std::vector<Index> undecided_o;
  std::vector<Index> undecided_lse;
};

ReferenceOutputs reference_outputs(ReferenceKind kind, const Problem& problem, const Inputs& inputs,
                                   const ParallelFor& parallel_for);

}  // namespace flashbound
