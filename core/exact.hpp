// Attention and its gradients, exactly: every number is the fp64 number nearest to the real one
// (ties to even; a zero is +0), and certified to be.
//
// WHAT IS COMPUTED. The definition of core/README.md over real numbers: inputs, softmax_scale,
// softcap, slopes and sinks are the fp64 numbers given, and nothing rounds in between. Unlike the
// reference, no exponential underflows and no sum overflows; a result beyond fp64 is infinite.
//
// CERTIFICATION. Numbers are balls, a midpoint and a radius that encloses every error (Johansson
// 2017, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic", IEEE Trans.
// Computers 66). A result whose ball has ends that round to the same double is that double. Others,
// a fraction of about 2^(65 - precision) of them where data is generic, are taken up one by one
// with twice the precision until the cap.
//
// TIES. Precision never tells a number from the boundary on which it lies. For O and lse it need
// not: keys are grouped by equal exact logits, and whether a result lies above, on or below a
// boundary is the sign of a sum of exponentials with exact coefficients. It is zero only if all
// coefficients are (Lindemann-Weierstrass; core/exact/exponential_sum.hpp), and then the result is
// the boundary, else some precision shows the sign. With a softcap c tanh(s/c) exponents are
// transcendental themselves: ties among equal logits are still found, others are not excluded.
// For gradients the numbers decided exactly are those that only rational rows reach: rows whose
// logits are all equal (P = 1/n), and rows whose dS is zero because all dP are equal (without a
// sink) or zero; there fractions are exact. A column of K that is the same for all keys of a row
// gives dQ = 0 without a sink or softcap. Everything else is taken for generic until the cap.
//
// UNDECIDED. What is in doubt at the cap is NaN and listed: never a guess.
//
// NOT FINITE. As the reference: a visible logit of NaN or +inf makes its row NaN (lse too), one of
// -inf has weight 0, and a visible value that is not finite makes its column of O what IEEE sums
// give with positive weights. In gradients a row with anything not finite (query, dO, or a key,
// value or logit that it sees) makes NaN everything it reaches: its dQ, and dK of the keys it sees;
// dV of those keys too unless only values are at fault, and where only dO is, dV in its columns.
//
// COST. One pair takes two dot products and an exponential at first_precision in forward, about 6
// nanoseconds a term; the backward pass computes pairs twice, by rows and by keys, so that memory
// stays O(seqlen) and parts share no sums. 1024 queries and keys with head_dim 64 take about 1.7
// seconds forward and 5 backward on one core. An element in doubt costs one row more in forward; in
// backward dK and dV need all rows again, which near the cap takes minutes at that size.
#pragma once

#include "core/gradients.hpp"
#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/query_block.hpp"
#include "core/tensor.hpp"

#include <vector>

namespace flashbound {

struct ExactOptions {
  int first_precision = 128;  // bits, at least 64; 2 limbs, beyond which Arb is thrice as slow
  int precision_cap = 16384;  // at least first_precision
};

struct ExactAttention {
  Tensor<double> o;    // (batch, num_heads_q, seqlen_q, head_dim_v)
  Tensor<double> lse;  // (batch, num_heads_q, seqlen_q, 1), natural logarithm
  // Undecided elements, as increasing indices into `elements`.
  std::vector<Index> undecided_o;
  std::vector<Index> undecided_lse;
  int precision = 0;  // bits that the hardest element took; 0 where nothing had to be computed
};

struct ExactHead {
  RowMatrix o;                       // seqlen_q x head_dim_v
  Eigen::VectorXd lse;               // seqlen_q
  std::vector<Index> undecided_o;    // row x head_dim_v + column
  std::vector<Index> undecided_lse;  // row
  int precision = 0;
};

struct ExactGradients {
  Gradients gradients;
  std::vector<Index> undecided_q;
  std::vector<Index> undecided_k;
  std::vector<Index> undecided_v;
  int precision = 0;
};

// All heads of all sequences; the same whatever runs the parts. Lengths of zero are legal. Throws
// ConfigError naming the input or the option that is wrong.
ExactAttention exact(const Problem& problem, const Inputs& inputs, const ExactOptions& options = {},
                     const ParallelFor& parallel_for = serial);

// One query head of one sequence: its rows in exact().
ExactHead exact_head(const Problem& problem, const Inputs& inputs, const Sequence& sequence,
                     Index head, const ExactOptions& options = {},
                     const ParallelFor& parallel_for = serial);

// dQ, dK and dV for grad_o of O's shape. Keys and queries that no sequence holds have gradient 0.
ExactGradients exact_gradients(const Problem& problem, const Inputs& inputs,
                               const TensorView<const double>& grad_o,
                               const ExactOptions& options = {},
                               const ParallelFor& parallel_for = serial);

}  // namespace flashbound
