#include "core/query_block.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace flashbound {
namespace {

RowMatrix gather(const TensorView<const double>& tensor, Index batch, Index head, Interval rows) {
  RowMatrix matrix(rows.size(), tensor.shape[3]);
  for (Index r = 0; r < matrix.rows(); ++r) {
    for (Index c = 0; c < matrix.cols(); ++c) {
      matrix(r, c) = tensor(batch, head, rows.begin + r, c);
    }
  }
  return matrix;
}

Interval shifted(Interval rows, Index by) { return {rows.begin + by, rows.end + by}; }

// Turns q k^T of one block of keys into logits.
void modify(const Head& head, Interval rows, const Block& keys, RowMatrix& products,
            RowMatrix* slopes) {
  const Problem& problem = head.problem();
  const Schedule& schedule = head.schedule();
  const double scale = softmax_scale(problem);
  const Index offset = schedule.shape.seqlen_kv - schedule.shape.seqlen_q;
  for (Index r = 0; r < products.rows(); ++r) {
    const Index query = rows.begin + r;
    for (Index c = 0; c < products.cols(); ++c) {
      const Index key = keys.span.begin + c;
      double& logit = products(r, c);
      if (keys.coverage != Coverage::full && !schedule.visible(query, key)) {
        logit = -std::numeric_limits<double>::infinity();
        continue;
      }
      logit *= scale;
      double slope = scale;
      if (problem.softcap > 0) {
        const double capped = std::tanh(logit / problem.softcap);
        logit = problem.softcap * capped;
        slope *= (1 - capped) * (1 + capped);
      }
      if (slopes != nullptr) (*slopes)(r, c) = slope;
      if (head.alibi_slope() != 0) {
        logit -= head.alibi_slope() * static_cast<double>(std::abs(query + offset - key));
      }
    }
  }
}

enum class Sign { kept, dropped };

void add_weighted(const Head& head, const QueryBlock& block, const RowMatrix& weights, Sign sign,
                  RowMatrix& sum) {
  for (const Block& keys : block.blocks) {
    RowMatrix v = head.values(keys.span);
    if (sign == Sign::dropped) v = v.cwiseAbs();
    const auto w = weights.middleCols(block.column(keys), keys.span.size());
    if (keys.coverage == Coverage::full || v.allFinite()) {
      sum.noalias() += w * v;
      continue;
    }
    for (Index r = 0; r < w.rows(); ++r) {
      for (Index c = 0; c < w.cols(); ++c) {
        if (head.schedule().visible(block.rows.begin + r, keys.span.begin + c)) {
          sum.row(r) += w(r, c) * v.row(c);
        }
      }
    }
  }
}

}  // namespace

Head::Head(const Problem& problem, const Inputs& inputs, const Sequence& sequence, Index head)
    : problem_(&problem),
      inputs_(&inputs),
      sequence_(sequence),
      head_(head),
      schedule_(schedule_for(problem, kReferenceTile, sequence)) {
  const auto h = static_cast<std::size_t>(head);
  if (!problem.alibi_slopes.empty()) alibi_slope_ = problem.alibi_slopes[h];
  if (!problem.sink.empty()) sink_ = problem.sink[h];
}

RowMatrix Head::queries(Interval rows) const { return query_rows(inputs_->q, rows); }
RowMatrix Head::query_rows(const TensorView<const double>& tensor, Interval rows) const {
  return gather(tensor, sequence_.batch, head_, shifted(rows, sequence_.q_begin));
}
RowMatrix Head::keys(Interval rows) const {
  return gather(inputs_->k, sequence_.batch, head_ / q_heads_per_kv_head(*problem_),
                shifted(rows, sequence_.kv_begin));
}
RowMatrix Head::values(Interval rows) const {
  return gather(inputs_->v, sequence_.batch, head_ / q_heads_per_kv_head(*problem_),
                shifted(rows, sequence_.kv_begin));
}

RowMatrix block_logits(const Head& head, const RowMatrix& q, Interval rows, const Block& keys,
                       RowMatrix* slopes) {
  if (slopes != nullptr) *slopes = RowMatrix::Zero(rows.size(), keys.span.size());
  RowMatrix logits;
  logits.noalias() = q * head.keys(keys.span).transpose();
  modify(head, rows, keys, logits, slopes);
  return logits;
}

QueryBlock query_block(const Head& head, Index i) {
  const Schedule& schedule = head.schedule();
  QueryBlock block;
  block.rows = schedule.q_rows(i);
  for (const Block keys : schedule.kv_blocks(i)) block.blocks.push_back(keys);
  if (!block.blocks.empty()) {
    block.keys = {block.blocks.front().span.begin, block.blocks.back().span.end};
  }
  block.logits = RowMatrix::Constant(block.rows.size(), block.keys.size(),
                                     -std::numeric_limits<double>::infinity());
  const RowMatrix q = head.queries(block.rows);
  for (const Block& keys : block.blocks) {
    block.logits.middleCols(block.column(keys), keys.span.size()) =
        block_logits(head, q, block.rows, keys);
  }
  return block;
}

void add_weighted_values(const Head& head, const QueryBlock& block, const RowMatrix& weights,
                         RowMatrix& sum) {
  add_weighted(head, block, weights, Sign::kept, sum);
}

void add_weighted_magnitudes(const Head& head, const QueryBlock& block, const RowMatrix& weights,
                             RowMatrix& sum) {
  add_weighted(head, block, weights, Sign::dropped, sum);
}

}  // namespace flashbound
