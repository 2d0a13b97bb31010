#include "core/backward_inputs.hpp"

#include "core/reference.hpp"

#include <cmath>
#include <string>
#include <utility>

namespace flashbound {
namespace {

HeadTensor zeros(const std::string& name, Index rows, Index cols) {
  return {name, rows, cols, std::vector<double>(static_cast<std::size_t>(rows * cols))};
}

double& at(HeadTensor& tensor, Index row, Index col) {
  return tensor.values[static_cast<std::size_t>(row * tensor.cols + col)];
}

HeadTensor grad_o_of(const TensorView<const double>& grad_o, const Problem& problem,
                     const Sequence& sequence, Index head) {
  require_shape("grad_o", grad_o,
                {problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v});
  HeadTensor result = zeros("grad_o", sequence.seqlen_q, problem.head_dim_v);
  for (Index r = 0; r < result.rows; ++r) {
    for (Index c = 0; c < result.cols; ++c) {
      at(result, r, c) = grad_o(sequence.batch, head, sequence.q_begin + r, c);
    }
  }
  return result;
}

struct RowTensors {
  HeadTensor o, lse, row_max, row_sum, p;
};

void fill_block(const Head& head, Index i, RowTensors& left) {
  QueryBlock block = query_block(head, i);
  RowMatrix o = RowMatrix::Zero(block.rows.size(), left.o.cols);
  for (Index r = 0; r < block.rows.size(); ++r) {
    const RowStatistics row = exponentiate_row(block.logits.row(r), head.sink());
    const Index query = block.rows.begin + r;
    at(left.row_max, query, 0) = row.maximum;
    at(left.row_sum, query, 0) = row.sum;
    at(left.lse, query, 0) = row.maximum + std::log(row.sum);
    for (Index c = 0; c < block.keys.size(); ++c) {
      // A weight of 0 may have no sum to be divided by, or NaN.
      const double weight = block.logits(r, c);
      at(left.p, query, block.keys.begin + c) = weight == 0 ? 0 : weight / row.sum;
    }
  }
  add_weighted_values(head, block, block.logits, o);
  for (Index r = 0; r < o.rows(); ++r) {
    const Index query = block.rows.begin + r;
    const double sum = at(left.row_sum, query, 0);
    for (Index c = 0; c < o.cols(); ++c) at(left.o, query, c) = sum == 0 ? 0 : o(r, c) / sum;
  }
}

}  // namespace

BackwardInputs backward_inputs(const Problem& problem, const Inputs& inputs,
                               const TensorView<const double>& grad_o, const Sequence& sequence,
                               Index head) {
  validate(problem, inputs);
  const Head of(problem, inputs, sequence, head);
  const Index rows = sequence.seqlen_q;
  RowTensors left{zeros("o", rows, problem.head_dim_v), zeros("lse", rows, 1),
                  zeros("row_max", rows, 1), zeros("row_sum", rows, 1),
                  zeros("p", rows, sequence.seqlen_kv)};
  for (Index i = 0; i < of.schedule().q_block_count(); ++i) fill_block(of, i, left);
  return {{grad_o_of(grad_o, problem, sequence, head), std::move(left.o), std::move(left.lse),
           std::move(left.row_max), std::move(left.row_sum), std::move(left.p)}};
}

BackwardInputs backward_inputs(const NumericRun& forward, const Problem& problem,
                               const TensorView<const double>& grad_o, const Sequence& sequence,
                               Index head) {
  BackwardInputs result{forward.outputs};
  result.tensors.push_back(grad_o_of(grad_o, problem, sequence, head));
  return result;
}

}  // namespace flashbound
