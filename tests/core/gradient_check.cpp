#include "tests/core/gradient_check.hpp"

#include "core/gradients.hpp"
#include "tests/core/within_bound.hpp"

#include <cmath>

namespace flashbound::testing {
namespace {

// Adds one query head's share to those of its group; `bound` with the roundings of that sum.
void add_share(const Grid& share, const Grid& share_bound, Index ratio, Grid& sum, Grid& bound) {
  for (std::size_t at = 0; at < share.values.size(); ++at) {
    sum.values[at] += share.values[at];
    const long double size = std::abs(share.values[at]) + share_bound.values[at];
    bound.values[at] += share_bound.values[at] + static_cast<long double>(ratio) * 0x1p-52L * size;
  }
}

void compare(const Tensor<double>& computed, Index batch, Index head, const Grid& exact,
             const Grid& bound, WorstRatio& worst) {
  for (Index r = 0; r < exact.rows; ++r) {
    for (Index c = 0; c < exact.cols; ++c) {
      worst.add(computed.view()(batch, head, r, c), exact(r, c), bound(r, c));
    }
  }
}

// The rows of one sequence, which begin at `first` in the bounds. Equal where both may be wrong by
// nothing; a missing tensor or row fails.
void compare(const HeadTensor* computed, const RowMatrix& reference, const Grid& bound,
             const Grid& reference_bound, Index first, WorstRatio& worst) {
  const bool whole = computed != nullptr && computed->rows == reference.rows() &&
                     computed->cols == reference.cols();
  if (!whole) worst.add(1, 0, 0);
  for (Index r = 0; whole && r < computed->rows; ++r) {
    for (Index c = 0; c < computed->cols; ++c) {
      worst.add((*computed)(r, c), reference(r, c),
                bound(first + r, c) + reference_bound(first + r, c));
    }
  }
}

}  // namespace

double gradients_share(const Problem& problem, const Inputs& inputs,
                       const TensorView<const double>& grad_o, const Gradients& computed) {
  WorstRatio worst;
  const Grid of_k(problem.seqlen_kv, problem.head_dim);
  const Grid of_v(problem.seqlen_kv, problem.head_dim_v);
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index kv = 0; kv < problem.num_heads_kv; ++kv) {
      const Index ratio = q_heads_per_kv_head(problem);
      Grid k = of_k, k_bound = of_k, v = of_v, v_bound = of_v;
      for (Index head = kv * ratio; head < (kv + 1) * ratio; ++head) {
        const auto exact = oracle_gradients(problem, inputs, grad_o, b, head, NumberFormat::fp64);
        compare(computed.q, b, head, exact.q, exact.q_bound, worst);
        add_share(exact.k, exact.k_bound, ratio, k, k_bound);
        add_share(exact.v, exact.v_bound, ratio, v, v_bound);
      }
      compare(computed.k, b, kv, k, k_bound, worst);
      compare(computed.v, b, kv, v, v_bound, worst);
    }
  }
  return worst.worst();
}

double reference_share(const Problem& problem, const Inputs& inputs,
                       const TensorView<const double>& grad_o) {
  return gradients_share(problem, inputs, grad_o, reference_gradients(problem, inputs, grad_o));
}

double program_share(const HeadTarget& target, const NumericRun& run, NumberFormat format,
                     Index updates) {
  const auto& [problem, inputs, grad_o, at, head] = target;
  const HeadGradients reference = reference_gradients_head(problem, inputs, grad_o, at, head);
  const OracleGradients own =
      oracle_gradients(problem, inputs, grad_o, at.batch, head, format, updates);
  const bool as_reference = format == NumberFormat::fp64 && updates == 0;
  const OracleGradients other =
      as_reference ? own
                   : oracle_gradients(problem, inputs, grad_o, at.batch, head, NumberFormat::fp64);
  WorstRatio worst;
  compare(run.find("grad_q"), reference.q, own.q_bound, other.q_bound, at.q_begin, worst);
  compare(run.find("grad_k"), reference.k, own.k_bound, other.k_bound, at.kv_begin, worst);
  compare(run.find("grad_v"), reference.v, own.v_bound, other.v_bound, at.kv_begin, worst);
  return worst.worst();
}

}  // namespace flashbound::testing
