#include "core/head_conditions.hpp"

#include "core/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Logits below it have a D far under 1 in fp32 for every head_dim, and need no spread.
constexpr double kLargeProduct = 1e3;

// What one block of keys brings to the extremes of a row.
struct KeyMagnitudes {
  Block keys;
  RowMatrix products;      // sum_c |q_c k_jc|: rows x keys
  Eigen::VectorXd values;  // max_c |v_jc|, finite ones
};

// Extremes of one row over the visible keys of one block of keys.
void observe(const Head& head, const QueryBlock& block, const KeyMagnitudes& magnitudes, Index r,
             RowConditions& row) {
  const Block& keys = magnitudes.keys;
  const Schedule& schedule = head.schedule();
  const Index query = block.rows.begin + r;
  const Index diagonal = query + schedule.shape.seqlen_kv - schedule.shape.seqlen_q;
  const double slope = std::abs(head.alibi_slope());
  for (Index c = 0; c < keys.span.size(); ++c) {
    const Index key = keys.span.begin + c;
    if (keys.coverage != Coverage::full && !schedule.visible(query, key)) continue;
    ++row.visible;
    const double logit = block.logits(r, block.column(keys) + c);
    row.logit_max = std::max(row.logit_max, logit);
    row.logit_min = std::min(row.logit_min, logit);
    // A NaN must not vanish in a maximum.
    const double product = magnitudes.products(r, c);
    if (!std::isfinite(product)) row.product_max = kInfinity;
    row.product_max = std::max(row.product_max, product);
    row.bias_max = std::max(row.bias_max, slope * static_cast<double>(std::abs(diagonal - key)));
    row.value_max = std::max(row.value_max, magnitudes.values(c));
  }
}

Eigen::VectorXd finite_magnitudes(const RowMatrix& v) {
  Eigen::VectorXd result = Eigen::VectorXd::Zero(v.rows());
  for (Index j = 0; j < v.rows(); ++j) {
    for (Index c = 0; c < v.cols(); ++c) {
      if (std::isfinite(v(j, c))) result(j) = std::max(result(j), std::abs(v(j, c)));
    }
  }
  return result;
}

// max v - min v over the visible keys, column by column.
Eigen::RowVectorXd spread_of(const Head& head, const QueryBlock& block, Index r) {
  const Index cols = head.problem().head_dim_v;
  Eigen::RowVectorXd high = Eigen::RowVectorXd::Constant(cols, -kInfinity);
  if (head.sink()) high.setZero();
  Eigen::RowVectorXd low = -high;
  for (const Block& keys : block.blocks) {
    const RowMatrix v = head.values(keys.span);
    for (Index c = 0; c < v.rows(); ++c) {
      if (!head.schedule().visible(block.rows.begin + r, keys.span.begin + c)) continue;
      high = high.cwiseMax(v.row(c));
      low = low.cwiseMin(v.row(c));
    }
  }
  return high - low;
}

void block_conditions(const Head& head, Index i, HeadConditions& result) {
  QueryBlock block = query_block(head, i);
  const RowMatrix q = head.queries(block.rows).cwiseAbs();
  std::vector<RowConditions> rows(static_cast<std::size_t>(block.rows.size()));
  for (RowConditions& row : rows) {
    row.logit_max = head.sink().value_or(-kInfinity);
    row.logit_min = head.sink().value_or(kInfinity);
  }
  for (const Block& keys : block.blocks) {
    const KeyMagnitudes magnitudes{keys, q * head.keys(keys.span).cwiseAbs().transpose(),
                                   finite_magnitudes(head.values(keys.span))};
    for (Index r = 0; r < q.rows(); ++r) {
      observe(head, block, magnitudes, r, rows[static_cast<std::size_t>(r)]);
    }
  }
  for (Index r = 0; r < q.rows(); ++r) {
    const RowConditions& row = rows[static_cast<std::size_t>(r)];
    const Index at = block.rows.begin + r;
    result.rows[static_cast<std::size_t>(at)] = row;
    if (row.visible > 0 && row.product_max * std::abs(result.scale) > kLargeProduct) {
      result.spread.row(at) = spread_of(head, block, r);
    }
  }
  RowMatrix mean = RowMatrix::Zero(q.rows(), head.problem().head_dim_v);
  Eigen::VectorXd sums(q.rows());
  for (Index r = 0; r < q.rows(); ++r) {
    sums(r) = exponentiate_row(block.logits.row(r), head.sink()).sum;
  }
  add_weighted_magnitudes(head, block, block.logits, mean);
  for (Index r = 0; r < q.rows(); ++r) {
    if (sums(r) != 0) mean.row(r) /= sums(r);
  }
  result.mean_magnitude.middleRows(block.rows.begin, block.rows.size()) = mean;
}

}  // namespace

HeadConditions head_conditions(const Problem& problem, const Inputs& inputs,
                               const Sequence& sequence, Index head,
                               const ParallelFor& parallel_for) {
  validate(problem, inputs);
  const Head at(problem, inputs, sequence, head);
  HeadConditions result;
  result.shape = at.schedule().shape;
  result.scale = softmax_scale(problem);
  result.softcap = problem.softcap;
  result.sink = at.sink();
  result.rows.resize(static_cast<std::size_t>(sequence.seqlen_q));
  result.mean_magnitude.resize(sequence.seqlen_q, problem.head_dim_v);
  result.spread = RowMatrix::Constant(sequence.seqlen_q, problem.head_dim_v, kInfinity);
  parallel_for(at.schedule().q_block_count(), [&](Index i) { block_conditions(at, i, result); });
  return result;
}

}  // namespace flashbound
