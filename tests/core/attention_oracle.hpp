// Attention by the definition (core/README.md, semantics), pair by pair in extended precision and
// without the core's schedule, mask or packing: an oracle for what computes it otherwise.
#pragma once

#include "core/problem.hpp"
#include "core/tensor.hpp"

namespace flashbound::testing {

struct ExactAttention {
  Tensor<long double> o;    // (batch, num_heads_q, seqlen_q, head_dim_v)
  Tensor<long double> lse;  // (batch, num_heads_q, seqlen_q, 1)
};

ExactAttention exact_attention(const Problem& problem, const Inputs& inputs);

// Logits of one query over the keys it sees; keys and logits side by side.
struct VisibleLogits {
  std::vector<Index> keys;  // along the sequence axis of the tensors
  std::vector<long double> logits;
};
// `row` counts along the tensors' sequence axis, packed or not.
VisibleLogits visible_logits(const Problem& problem, const Inputs& inputs, Index batch, Index head,
                             Index row);

}  // namespace flashbound::testing
