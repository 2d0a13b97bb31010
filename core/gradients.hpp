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
#include "core/tensor.hpp"

namespace flashbound {

struct Gradients {
  Tensor<double> q;  // (batch, num_heads_q, seqlen_q, head_dim)
  Tensor<double> k;  // (batch, num_heads_kv, seqlen_kv, head_dim)
  Tensor<double> v;  // (batch, num_heads_kv, seqlen_kv, head_dim_v)
};

}  // namespace flashbound
