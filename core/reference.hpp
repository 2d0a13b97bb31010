// The reference: O and lse straight from the definition (core/README.md, semantics), in fp64 with
// a softmax in two passes. How far it may be from the exact answer: core/error_bound.hpp.
#pragma once

#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/query_block.hpp"
#include "core/tensor.hpp"

#include <array>

namespace flashbound {

struct Attention {
  Tensor<double> o;    // (batch, num_heads_q, seqlen_q, head_dim_v)
  Tensor<double> lse;  // (batch, num_heads_q, seqlen_q, 1), natural logarithm
};

struct HeadOutput {
  RowMatrix o;          // seqlen_q x head_dim_v
  Eigen::VectorXd lse;  // seqlen_q
};

// Throws ConfigError naming the tensor `field` if its shape is another.
void require_shape(const char* field, const TensorView<const double>& tensor,
                   const std::array<Index, 4>& shape);
// The same for the inputs, whose shapes are the problem's.
void validate(const Problem& problem, const Inputs& inputs);

// All heads of all sequences. Lengths of zero are legal; an infinite logit makes its row NaN. The
// result is the same, bit for bit, whatever runs the parts.
Attention reference(const Problem& problem, const Inputs& inputs,
                    const ParallelFor& parallel_for = serial);

// One query head of one sequence: the same bits as its rows in reference().
HeadOutput reference_head(const Problem& problem, const Inputs& inputs, const Sequence& sequence,
                          Index head, const ParallelFor& parallel_for = serial);

// Turns a row's logits into exp(logit - maximum), the sink's share left out. `sum` counts it.
struct RowStatistics {
  double maximum = 0;  // of the visible logits and the sink; -inf when there is none
  double sum = 0;      // of exp(logit - maximum) over visible keys and the sink
};
RowStatistics exponentiate_row(Eigen::Ref<Eigen::RowVectorXd> logits, std::optional<double> sink);

}  // namespace flashbound
