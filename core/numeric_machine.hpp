// The interpreter behind run_numeric(): walks a program's loops and applies the operations of an
// arithmetic to its tiles.
#pragma once

#include "core/errors.hpp"
#include "core/numeric.hpp"
#include "core/program_ranges.hpp"
#include "core/query_block.hpp"
#include "core/roled_tile.hpp"

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace flashbound {

using numeric::Matrix;

// One head as the run has it.
template <class Scalar>
struct RoundedHead {
  Matrix<Scalar> q, k, v;
  std::map<std::string, Matrix<Scalar>> more;  // inputs of a backward pass
  numeric::ScoreModifiers<Scalar> modifiers;
  std::optional<Scalar> sink;
};

template <class Arithmetic>
RoundedHead<typename Arithmetic::Scalar> rounded(const Head& head, const BackwardInputs& backward,
                                                 Arithmetic& arithmetic) {
  const Shape& shape = head.schedule().shape;
  RoundedHead<typename Arithmetic::Scalar> result;
  result.q = arithmetic.inputs(head.queries({0, shape.seqlen_q}));
  result.k = arithmetic.inputs(head.keys({0, shape.seqlen_kv}));
  result.v = arithmetic.inputs(head.values({0, shape.seqlen_kv}));
  result.modifiers.scale = arithmetic.constant(softmax_scale(head.problem()));
  result.modifiers.softcap = arithmetic.constant(head.problem().softcap);
  result.modifiers.alibi_slope = arithmetic.constant(head.alibi_slope());
  if (head.sink()) result.sink = arithmetic.constant(*head.sink());
  for (const HeadTensor& tensor : backward.tensors) {
    const Eigen::Map<const RowMatrix> values(tensor.values.data(), tensor.rows, tensor.cols);
    result.more[tensor.name] = arithmetic.left_by_forward(values, tensor.cols == 1);
  }
  return result;
}

// Arithmetic: PlainArithmetic or EmulatedArithmetic, which have the same operations.
template <class Arithmetic>
class NumericMachine {
 public:
  using Scalar = typename Arithmetic::Scalar;
  NumericMachine(const Program& program, const Schedule& schedule, const RoundedHead<Scalar>& head,
                 Arithmetic& arithmetic)
      : program_(program),
        schedule_(schedule),
        head_(head),
        arithmetic_(arithmetic),
        environment_(program.loops.size(), 0),
        tiles_(program.tiles.size()) {
    find_sums_of_parts(program.body);
    for (const TensorDecl& tensor : program.tensors) tensors_.push_back(begin_tensor(tensor));
  }

  NumericRun run() {
    visit_all(program_.body);
    NumericRun result;
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      if (program_.tensors[t].role != TensorRole::output) continue;
      const Matrix<Scalar>& m = tensors_[t].front();
      HeadTensor output{program_.tensors[t].name, m.rows(), m.cols(), {}};
      output.values.assign(m.data(), m.data() + m.size());
      result.outputs.push_back(std::move(output));
    }
    result.rescales = arithmetic_.rescales();
    result.range = arithmetic_.events();
    result.log_weight_offset = arithmetic_.log_weight_offset();
    return result;
  }

 private:
  using Tensor = std::vector<Matrix<Scalar>>;  // one matrix a split, or a single one

  Tensor begin_tensor(const TensorDecl& tensor) const {
    if (tensor.role == TensorRole::input) {
      if (tensor.name == "q") return {head_.q};
      if (tensor.name == "k") return {head_.k};
      if (tensor.name == "v") return {head_.v};
      return {input(tensor)};
    }
    const std::size_t axes = tensor.axes.size();
    const Index splits = axes == 3 ? schedule_.tile.num_splits : 1;
    const Matrix<Scalar> matrix =
        filled(tensor.initial, span({tensor.axes[axes - 2], kNone}).size(),
               span({tensor.axes[axes - 1], kNone}).size());
    return Tensor(static_cast<std::size_t>(splits), matrix);
  }

  const Matrix<Scalar>& input(const TensorDecl& tensor) const {
    const auto found = head_.more.find(tensor.name);
    if (found == head_.more.end()) reject("program input", tensor.name, "q, k, v or given");
    const Index rows = span({tensor.axes.front(), kNone}).size();
    const Index cols = span({tensor.axes.back(), kNone}).size();
    if (found->second.rows() != rows || found->second.cols() != cols) {
      reject(tensor.name, "another shape",
             std::to_string(rows) + " x " + std::to_string(cols) + " for this head");
    }
    return found->second;
  }

  Matrix<Scalar> filled(Content content, Index rows, Index cols,
                        SumOf sum_of = SumOf::weights) const {
    constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();
    const auto constant = [&](Scalar value) {
      return Matrix<Scalar>(Matrix<Scalar>::Constant(rows, cols, value));
    };
    switch (content) {
      // What nobody wrote must not pass for a result.
      case Content::undefined: return constant(std::numeric_limits<Scalar>::quiet_NaN());
      case Content::negative_infinity: return constant(-kInfinity);
      case Content::sink_max: return constant(head_.sink.value_or(-kInfinity));
      case Content::sink_sum:
        return constant(head_.sink ? arithmetic_.sink_sum(sum_of) : Scalar{0});
      case Content::zero: break;
    }
    return constant(Scalar{0});
  }

  void visit_all(const std::vector<Statement>& body) {
    for (const Statement& statement : body) visit(statement);
  }

  void visit(const Statement& s) {
    switch (s.op) {
      case Op::kernel: return visit_all(s.body);
      case Op::loop: return visit_loop(s);
      case Op::load: only(s.result) = block(s); return;
      case Op::store:
        block(s) = arithmetic_.stored(tile(s.a),
                                      program_.tensors[static_cast<std::size_t>(s.tensor)].width);
        return;
      case Op::allocate: return allocate(s);
      case Op::release: tiles_[index(s.a)].clear(); return;
      default: return compute(s);
    }
  }

  void compute(const Statement& s) {
    switch (s.op) {
      case Op::multiply_transposed:
        return arithmetic_.multiply_transposed(roled(s.result), roled(s.a), roled(s.b));
      case Op::multiply: return multiply(s);
      case Op::logits:
        return arithmetic_.logits(tile(s.result), head_.modifiers, schedule_, region(s.result));
      case Op::row_max_update:
        return arithmetic_.row_max_update(tile(s.result), tile(s.a),
                                          s.b.present() ? &tile(s.b) : nullptr);
      case Op::exponentiate: return arithmetic_.exponentiate(roled(s.result), tile(s.a));
      case Op::rescale: return arithmetic_.rescale(roled(s.result), tile(s.a));
      case Op::row_sum_update: return arithmetic_.row_sum_update(tile(s.result), tile(s.a));
      case Op::scale_add: return arithmetic_.scale_add(roled(s.result), tile(s.a), tile(s.b));
      case Op::divide: return arithmetic_.divide(roled(s.result), tile(s.a));
      case Op::lse: return arithmetic_.lse(tile(s.result), tile(s.a), tile(s.b), sum_of(s.b));
      default: return compute_gradient(s);
    }
  }

  void compute_gradient(const Statement& s) {
    switch (s.op) {
      case Op::multiply_left_transposed:
        return arithmetic_.multiply_left_transposed(roled(s.result), roled(s.a), roled(s.b),
                                                    schedule_, region(s.a));
      case Op::row_dot: {
        const bool of_scores = program_.tiles[index(s.a)].cols.axis == Axis::key;
        if (!of_scores) return arithmetic_.row_dot(tile(s.result), tile(s.a), tile(s.b));
        return arithmetic_.row_dot_visible(tile(s.result), tile(s.a), tile(s.b), schedule_,
                                           region(s.a));
      }
      case Op::softmax_gradient:
        return arithmetic_.softmax_gradient(tile(s.result), tile(s.a), tile(s.b), schedule_,
                                            region(s.result));
      case Op::logits_gradient:
        return arithmetic_.logits_gradient(tile(s.result), s.a.present() ? &tile(s.a) : nullptr,
                                           s.b.present() ? &tile(s.b) : nullptr, head_.modifiers,
                                           schedule_, region(s.result));
      default: return;  // validate() leaves no other
    }
  }

  void visit_loop(const Statement& s) {
    const auto loop = static_cast<std::size_t>(s.loop);
    for_each_block(loop_blocks(program_.loops[loop].range, schedule_, environment_),
                   [&](Index block) {
                     environment_[loop] = block;
                     visit_all(s.body);
                   });
  }

  void allocate(const Statement& s) {
    const TileDecl& declared = program_.tiles[index(s.result)];
    const Matrix<Scalar> matrix =
        filled(s.fill, span(declared.rows).size(), span(declared.cols).size(), sum_of(s.result));
    auto& copies = tiles_[index(s.result)];
    copies.clear();
    if (!declared.copied) {
      copies[0] = matrix;
      return;
    }
    for_each_block(loop_blocks(declared.copies, schedule_, environment_),
                   [&](Index block) { copies[block] = matrix; });
  }

  void multiply(const Statement& s) {
    const bool over_keys = program_.tiles[index(s.a)].cols.axis == Axis::key;
    if (over_keys && !tile(s.b).allFinite()) {
      return arithmetic_.multiply_visible(roled(s.result), roled(s.a), roled(s.b), schedule_,
                                          region(s.a));
    }
    arithmetic_.multiply(roled(s.result), roled(s.a), roled(s.b));
  }

  static std::size_t index(const Operand& operand) {
    return static_cast<std::size_t>(operand.tile);
  }

  Interval span(const Extent& extent) const {
    return interval_of(extent, schedule_, program_, environment_);
  }
  numeric::ScoreRegion region(const Operand& scores) const {
    const TileDecl& declared = program_.tiles[index(scores)];
    return {span(declared.rows), span(declared.cols)};
  }
  Matrix<Scalar>& only(const Operand& operand) { return tiles_[index(operand)][0]; }
  Matrix<Scalar>& tile(const Operand& operand) {
    const Index copy =
        operand.copy == kNone ? 0 : environment_[static_cast<std::size_t>(operand.copy)];
    return tiles_[index(operand)].at(copy);
  }

  SumOf sum_of(const Operand& row_sum) const {
    return sums_of_parts_.count(row_sum.tile) != 0 ? SumOf::parts : SumOf::weights;
  }
  // Row sums that add up statistics: the lse of parts, exponentiated.
  void find_sums_of_parts(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      find_sums_of_parts(s.body);
      if (s.op != Op::row_sum_update) continue;
      if (program_.tiles[index(s.a)].role == TileRole::statistic) {
        sums_of_parts_.insert(s.result.tile);
      }
    }
  }
  RoledTile<Scalar> roled(const Operand& operand) {
    return {tile(operand), program_.tiles[index(operand)].role};
  }

  // The part of an HBM tensor that a load or store names.
  Eigen::Block<Matrix<Scalar>> block(const Statement& s) {
    const std::size_t n = s.region.size();
    const Index split = n == 3 ? environment_[static_cast<std::size_t>(s.region[0].loop)] : 0;
    const Interval rows = span(s.region[n - 2]);
    const Interval cols = span(s.region[n - 1]);
    Matrix<Scalar>& tensor =
        tensors_[static_cast<std::size_t>(s.tensor)][static_cast<std::size_t>(split)];
    return tensor.block(rows.begin, cols.begin, rows.size(), cols.size());
  }

  const Program& program_;
  const Schedule& schedule_;
  const RoundedHead<Scalar>& head_;
  Arithmetic& arithmetic_;
  Environment environment_;
  std::set<int> sums_of_parts_;
  std::vector<Tensor> tensors_;                         // HBM
  std::vector<std::map<Index, Matrix<Scalar>>> tiles_;  // fast memory, by copy
};

}  // namespace flashbound
