#include "core/numeric.hpp"

#include "core/errors.hpp"
#include "core/numeric_gradient_operations.hpp"
#include "core/numeric_operations.hpp"
#include "core/program_ranges.hpp"
#include "core/query_block.hpp"

#include <cmath>
#include <cstddef>
#include <map>
#include <optional>

namespace flashbound {
namespace {

using numeric::Matrix;

// One head, rounded to the arithmetic of the run.
template <class Scalar>
struct RoundedHead {
  Matrix<Scalar> q, k, v;
  std::map<std::string, Matrix<Scalar>> more;  // inputs of a backward pass
  numeric::ScoreModifiers<Scalar> modifiers;
  std::optional<Scalar> sink;
};

template <class Scalar>
RoundedHead<Scalar> rounded(const Head& head, const BackwardInputs& backward) {
  const Shape& shape = head.schedule().shape;
  RoundedHead<Scalar> result;
  result.q = head.queries({0, shape.seqlen_q}).template cast<Scalar>();
  result.k = head.keys({0, shape.seqlen_kv}).template cast<Scalar>();
  result.v = head.values({0, shape.seqlen_kv}).template cast<Scalar>();
  result.modifiers.scale = static_cast<Scalar>(softmax_scale(head.problem()));
  result.modifiers.softcap = static_cast<Scalar>(head.problem().softcap);
  result.modifiers.alibi_slope = static_cast<Scalar>(head.alibi_slope());
  if (head.sink()) result.sink = static_cast<Scalar>(*head.sink());
  for (const HeadTensor& tensor : backward.tensors) {
    const Eigen::Map<const RowMatrix> values(tensor.values.data(), tensor.rows, tensor.cols);
    result.more[tensor.name] = values.template cast<Scalar>();
  }
  return result;
}

template <class Scalar>
class NumericMachine {
 public:
  NumericMachine(const Program& program, const Schedule& schedule, const RoundedHead<Scalar>& head)
      : program_(program),
        schedule_(schedule),
        head_(head),
        environment_(program.loops.size(), 0),
        tiles_(program.tiles.size()) {
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
    result.rescales = rescales_;
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

  Matrix<Scalar> filled(Content content, Index rows, Index cols) const {
    constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();
    const auto constant = [&](Scalar value) {
      return Matrix<Scalar>(Matrix<Scalar>::Constant(rows, cols, value));
    };
    switch (content) {
      // What nobody wrote must not pass for a result.
      case Content::undefined: return constant(std::numeric_limits<Scalar>::quiet_NaN());
      case Content::negative_infinity: return constant(-kInfinity);
      case Content::sink_max: return constant(head_.sink.value_or(-kInfinity));
      case Content::sink_sum: return constant(head_.sink ? Scalar{1} : Scalar{0});
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
      case Op::store: block(s) = tile(s.a); return;
      case Op::allocate: return allocate(s);
      case Op::release: tiles_[index(s.a)].clear(); return;
      case Op::multiply_transposed:
        tile(s.result).noalias() += tile(s.a) * tile(s.b).transpose();
        return;
      case Op::multiply: return multiply(s);
      case Op::multiply_left_transposed:
        return numeric::multiply_left_transposed(tile(s.result), tile(s.a), tile(s.b), schedule_,
                                                 region(s.a));
      case Op::logits:
        return numeric::logits(tile(s.result), head_.modifiers, schedule_, region(s.result));
      case Op::row_max_update:
        rescales_ += numeric::row_max_update(tile(s.result), tile(s.a),
                                             s.b.present() ? &tile(s.b) : nullptr);
        return;
      case Op::exponentiate: return numeric::exponentiate(tile(s.result), tile(s.a));
      case Op::rescale: return numeric::rescale(tile(s.result), tile(s.a));
      case Op::row_sum_update: tile(s.result) += tile(s.a).rowwise().sum(); return;
      case Op::scale_add: tile(s.result) += tile(s.a).col(0).asDiagonal() * tile(s.b); return;
      case Op::divide: return numeric::divide(tile(s.result), tile(s.a));
      case Op::lse: return numeric::lse(tile(s.result), tile(s.a), tile(s.b));
      case Op::row_dot: return row_dot(s);
      case Op::softmax_gradient:
        return numeric::softmax_gradient(tile(s.result), tile(s.a), tile(s.b), schedule_,
                                         region(s.result));
      case Op::logits_gradient:
        return numeric::logits_gradient(tile(s.result), s.a.present() ? &tile(s.a) : nullptr,
                                        s.b.present() ? &tile(s.b) : nullptr, head_.modifiers,
                                        schedule_, region(s.result));
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
        filled(s.fill, span(declared.rows).size(), span(declared.cols).size());
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
      return numeric::multiply_visible(tile(s.result), tile(s.a), tile(s.b), schedule_,
                                       region(s.a));
    }
    tile(s.result).noalias() += tile(s.a) * tile(s.b);
  }

  void row_dot(const Statement& s) {
    if (program_.tiles[index(s.a)].cols.axis == Axis::key) {
      return numeric::row_dot_visible(tile(s.result), tile(s.a), tile(s.b), schedule_, region(s.a));
    }
    tile(s.result) = tile(s.a).cwiseProduct(tile(s.b)).rowwise().sum();
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
  Environment environment_;
  std::vector<Tensor> tensors_;                         // HBM
  std::vector<std::map<Index, Matrix<Scalar>>> tiles_;  // fast memory, by copy
  Index rescales_ = 0;
};

template <class Scalar>
NumericRun run(const Program& program, const Problem& problem, const Tile& tile,
               const Inputs& inputs, const BackwardInputs& backward, const Sequence& sequence,
               Index head) {
  const Schedule schedule = schedule_for(problem, tile, sequence);
  const RoundedHead<Scalar> operands =
      rounded<Scalar>(Head(problem, inputs, sequence, head), backward);
  return NumericMachine<Scalar>(program, schedule, operands).run();
}

}  // namespace

const HeadTensor* NumericRun::find(std::string_view name) const {
  for (const HeadTensor& output : outputs) {
    if (output.name == name) return &output;
  }
  return nullptr;
}

std::optional<double> NumericRun::lse(Index row) const {
  if (const HeadTensor* own = find("lse")) return (*own)(row, 0);
  const HeadTensor* row_max = find("row_max");
  const HeadTensor* row_sum = find("row_sum");
  if (row_max == nullptr || row_sum == nullptr) return std::nullopt;
  return (*row_max)(row, 0) + std::log((*row_sum)(row, 0));
}

const HeadTensor* BackwardInputs::find(std::string_view name) const {
  for (const HeadTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const Sequence& sequence, Index head,
                       NumberFormat format) {
  return run_numeric(program, problem, tile, inputs, {}, sequence, head, format);
}

NumericRun run_numeric(const Program& program, const Problem& problem, const Tile& tile,
                       const Inputs& inputs, const BackwardInputs& backward,
                       const Sequence& sequence, Index head, NumberFormat format) {
  switch (format) {
    case NumberFormat::fp64:
      return run<double>(program, problem, tile, inputs, backward, sequence, head);
    case NumberFormat::fp32:
      return run<float>(program, problem, tile, inputs, backward, sequence, head);
    default: reject("arithmetic", std::string(name(format)), "fp64 or fp32");
  }
}

}  // namespace flashbound
