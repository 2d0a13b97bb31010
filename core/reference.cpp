#include "core/reference.hpp"

#include "core/errors.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string to_string(const std::array<Index, 4>& shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < 4; ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(shape[axis]);
  }
  return text + ")";
}

// One block of queries: the unit of work, always computed alike.
struct BlockOutput {
  RowMatrix o;
  Eigen::VectorXd lse;
};

BlockOutput block_output(const Head& head, Index i) {
  QueryBlock block = query_block(head, i);
  RowMatrix& weights = block.logits;
  BlockOutput result;
  result.o = RowMatrix::Zero(weights.rows(), head.problem().head_dim_v);
  result.lse.resize(weights.rows());
  Eigen::VectorXd sums(weights.rows());
  for (Index r = 0; r < weights.rows(); ++r) {
    const RowStatistics row = exponentiate_row(weights.row(r), head.sink());
    sums(r) = row.sum;
    result.lse(r) = row.maximum + std::log(row.sum);
  }
  add_weighted_values(head, block, weights, result.o);
  for (Index r = 0; r < weights.rows(); ++r) {
    if (sums(r) != 0) result.o.row(r) /= sums(r);  // else no key was seen, and O is 0
  }
  return result;
}

struct Part {
  Index sequence = 0;
  Index head = 0;
  Index block = 0;
};

}  // namespace

void require_shape(const char* field, const TensorView<const double>& tensor,
                   const std::array<Index, 4>& shape) {
  if (tensor.shape != shape) {
    reject(field, "shape " + to_string(tensor.shape), "of shape " + to_string(shape));
  }
}

void validate(const Problem& problem, const Inputs& inputs) {
  const Problem& p = problem;
  require_shape("q", inputs.q, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim});
  require_shape("k", inputs.k, {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim});
  require_shape("v", inputs.v, {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v});
}

RowStatistics exponentiate_row(Eigen::Ref<Eigen::RowVectorXd> logits, std::optional<double> sink) {
  RowStatistics row{sink.value_or(-kInfinity), 0};
  for (Index j = 0; j < logits.size(); ++j) {
    // NaN wins, and stays.
    if (std::isnan(logits(j)) || logits(j) > row.maximum) row.maximum = logits(j);
  }
  if (sink) row.sum = std::exp(*sink - row.maximum);
  for (Index j = 0; j < logits.size(); ++j) {
    // Also where the maximum is -inf, whose difference with itself is NaN.
    logits(j) = logits(j) == -kInfinity ? 0.0 : std::exp(logits(j) - row.maximum);
    row.sum += logits(j);
  }
  return row;
}

Attention reference(const Problem& problem, const Inputs& inputs, const ParallelFor& parallel_for) {
  validate(problem, Emptiness::allowed);
  validate(problem, inputs);
  Attention result{
      Tensor<double>({problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v}),
      Tensor<double>({problem.batch, problem.num_heads_q, problem.seqlen_q, 1})};
  if (result.lse.elements.empty()) return result;  // no rows, of however many heads
  std::vector<Part> parts;
  for (Index s = 0; s < sequence_count(problem); ++s) {
    const Index blocks = Partition{sequence(problem, s).seqlen_q, kReferenceTile.block_q}.count();
    for (Index head = 0; head < problem.num_heads_q; ++head) {
      for (Index block = 0; block < blocks; ++block) parts.push_back({s, head, block});
    }
  }
  const TensorView<double> o = result.o.view();
  const TensorView<double> lse = result.lse.view();
  parallel_for(static_cast<Index>(parts.size()), [&](Index index) {
    const Part& part = parts[static_cast<std::size_t>(index)];
    const Sequence at = sequence(problem, part.sequence);
    const BlockOutput block = block_output(Head(problem, inputs, at, part.head), part.block);
    const Index first = at.q_begin + part.block * kReferenceTile.block_q;
    for (Index r = 0; r < block.o.rows(); ++r) {
      lse(at.batch, part.head, first + r, 0) = block.lse(r);
      for (Index c = 0; c < block.o.cols(); ++c) {
        o(at.batch, part.head, first + r, c) = block.o(r, c);
      }
    }
  });
  return result;
}

HeadOutput reference_head(const Problem& problem, const Inputs& inputs, const Sequence& sequence,
                          Index head, const ParallelFor& parallel_for) {
  validate(problem, inputs);
  const Head at(problem, inputs, sequence, head);
  HeadOutput result{RowMatrix(sequence.seqlen_q, problem.head_dim_v),
                    Eigen::VectorXd(sequence.seqlen_q)};
  parallel_for(at.schedule().q_block_count(), [&](Index i) {
    const BlockOutput block = block_output(at, i);
    const Interval rows = at.schedule().q_rows(i);
    result.o.middleRows(rows.begin, rows.size()) = block.o;
    result.lse.segment(rows.begin, rows.size()) = block.lse;
  });
  return result;
}

}  // namespace flashbound
