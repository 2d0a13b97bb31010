// Gradients of attention: what dO gives back to Q, K and V.
//
// With S = q k^T, logits L (scale, softcap, ALiBi, mask), P = softmax(L) with the sink in its
// denominator, and O = P V:
//   dV = P^T dO,  dP = dO V^T,  delta = rowsum(P o dP) = rowsum(dO o O),
//   dL = P o (dP - delta),  dS = dL o dL/dS,  dQ = dS K,  dK = dS^T Q.
// (Dao et al. 2022, arXiv 2205.14135, appendix B.2; the sink adds a column of P without a value.)
// dK and dV of a key head are sums over the query heads that read it. Rows that see no key have
// gradients 0.
#pragma once

#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/query_block.hpp"
#include "core/tensor.hpp"

namespace flashbound {

struct Gradients {
  Tensor<double> q;  // (batch, num_heads_q, seqlen_q, head_dim)
  Tensor<double> k;  // (batch, num_heads_kv, seqlen_kv, head_dim)
  Tensor<double> v;  // (batch, num_heads_kv, seqlen_kv, head_dim_v)
};

// What one query head gives back. Key heads of a group add up those of their query heads.
struct HeadGradients {
  RowMatrix q;  // seqlen_q x head_dim
  RowMatrix k;  // seqlen_kv x head_dim
  RowMatrix v;  // seqlen_kv x head_dim_v
};

// All heads of all sequences, in fp64; grad_o is dO (batch, num_heads_q, seqlen_q, head_dim_v).
// Lengths of zero are legal. A NaN reaches exactly what sees it: a masked pair adds nothing, not
// even 0 x NaN. The result is the same, bit for bit, whatever runs the parts. Keys of padding that
// no sequence of cu_seqlens holds have gradients 0.
Gradients reference_gradients(const Problem& problem, const Inputs& inputs,
                              const TensorView<const double>& grad_o,
                              const ParallelFor& parallel_for = serial);

// One query head of one sequence. q has the same bits as its rows in reference_gradients(), whose k
// and v are the sums of these in the order of the query heads.
HeadGradients reference_gradients_head(const Problem& problem, const Inputs& inputs,
                                       const TensorView<const double>& grad_o,
                                       const Sequence& sequence, Index head,
                                       const ParallelFor& parallel_for = serial);

}  // namespace flashbound
