#include "core/program_builder.hpp"

#include <utility>

namespace flashbound {

TensorRef ProgramBuilder::o() {
  return tensor({.name = "o", .role = TensorRole::output, .axes = {Axis::query, Axis::head_dim_v}});
}

TensorRef ProgramBuilder::lse_output() {
  return tensor({.name = "lse",
                 .role = TensorRole::output,
                 .width = Width::statistic,
                 .axes = {Axis::query, Axis::one}});
}

TensorRef ProgramBuilder::gradient(const std::string& name, std::vector<Axis> axes,
                                   Content initial) {
  return tensor({name, TensorRole::output, Width::data, initial, std::move(axes)});
}

TensorRef ProgramBuilder::intermediate_scores(const std::string& name) {
  return tensor({.name = name, .role = TensorRole::intermediate, .axes = {Axis::query, Axis::key}});
}

TensorRef ProgramBuilder::input(const std::string& name, std::vector<Axis> axes) {
  return tensor({name, TensorRole::input, Width::data, Content::undefined, std::move(axes)});
}

TensorRef ProgramBuilder::row_input(const std::string& name) {
  return tensor({.name = name,
                 .role = TensorRole::input,
                 .width = Width::statistic,
                 .axes = {Axis::query, Axis::one}});
}

TensorRef ProgramBuilder::tensor(TensorDecl declaration) {
  program_.tensors.push_back(std::move(declaration));
  return {static_cast<int>(program_.tensors.size()) - 1};
}

void ProgramBuilder::kernel(const std::string& label, const Body& body) {
  Statement statement{.op = Op::kernel, .label = label};
  scopes_.push_back(&statement.body);
  body();
  scopes_.pop_back();
  add(std::move(statement));
}

void ProgramBuilder::loop(const std::string& name, LoopRange range, const LoopBody& body) {
  program_.loops.push_back({name, range});
  const int loop = static_cast<int>(program_.loops.size()) - 1;
  Statement statement{.op = Op::loop, .loop = loop};
  scopes_.push_back(&statement.body);
  body({loop, axis_of(range.kind)});
  scopes_.pop_back();
  add(std::move(statement));
}

TileRef ProgramBuilder::load(TensorRef tensor, std::vector<Extent> region, TileRole role) {
  // A leading third extent selects a split; the tile is spanned by the last two.
  const Extent rows = region.at(region.size() - 2);
  const Extent cols = region.at(region.size() - 1);
  const std::string& name = program_.tensors.at(static_cast<std::size_t>(tensor.tensor)).name;
  const TileRef tile{{declare({.name = name, .role = role, .rows = rows, .cols = cols}), kNone}};
  add({.op = Op::load,
       .tensor = tensor.tensor,
       .region = std::move(region),
       .result = tile.operand});
  return tile;
}

void ProgramBuilder::store(TensorRef tensor, std::vector<Extent> region, TileRef tile) {
  add({.op = Op::store, .tensor = tensor.tensor, .region = std::move(region), .a = tile.operand});
}

TileRef ProgramBuilder::allocate(TileDecl declaration, Content fill) {
  const TileRef tile{{declare(std::move(declaration)), kNone}};
  add({.op = Op::allocate, .fill = fill, .result = tile.operand});
  return tile;
}

TileRef ProgramBuilder::zeros(const std::string& name, TileRole role, Extent rows, Extent cols) {
  return allocate({.name = name, .role = role, .rows = rows, .cols = cols});
}

RowState ProgramBuilder::row_state(Extent rows, RowStart start) {
  const bool sink = start == RowStart::sink;
  const TileDecl max{.name = "row_max", .role = TileRole::statistic, .rows = rows, .cols = kColumn};
  const TileDecl sum{.name = "row_sum", .role = TileRole::statistic, .rows = rows, .cols = kColumn};
  return {allocate(max, sink ? Content::sink_max : Content::negative_infinity),
          allocate(sum, sink ? Content::sink_sum : Content::zero)};
}

RowState ProgramBuilder::row_state_copies(Extent rows, LoopRange copies) {
  const TileRole role = TileRole::statistic;
  return {allocate({"row_max", role, rows, kColumn, true, copies}, Content::negative_infinity),
          allocate({"row_sum", role, rows, kColumn, true, copies}, Content::zero)};
}

void ProgramBuilder::release(TileRef tile) { add({.op = Op::release, .a = tile.operand}); }

TileRef ProgramBuilder::scores(TileRef q, TileRef k) {
  const TileRef s = zeros("scores", TileRole::score, declaration(q).rows, declaration(k).rows);
  multiply_transposed(s, q, k);
  return s;
}

void ProgramBuilder::multiply_transposed(TileRef sum, TileRef a, TileRef b) {
  add({.op = Op::multiply_transposed, .result = sum.operand, .a = a.operand, .b = b.operand});
}

void ProgramBuilder::multiply(TileRef sum, TileRef a, TileRef b) {
  add({.op = Op::multiply, .result = sum.operand, .a = a.operand, .b = b.operand});
}

void ProgramBuilder::multiply_left_transposed(TileRef sum, TileRef a, TileRef b) {
  add({.op = Op::multiply_left_transposed, .result = sum.operand, .a = a.operand, .b = b.operand});
}

void ProgramBuilder::logits(TileRef scores) { add({.op = Op::logits, .result = scores.operand}); }

TileRef ProgramBuilder::row_max_update(TileRef row_max, TileRef scores) {
  const TileRef factor =
      zeros("rescale_factor", TileRole::statistic, declaration(row_max).rows, kColumn);
  add({.op = Op::row_max_update,
       .result = row_max.operand,
       .a = scores.operand,
       .b = factor.operand});
  return factor;
}

void ProgramBuilder::row_max_first(TileRef row_max, TileRef scores) {
  add({.op = Op::row_max_update, .result = row_max.operand, .a = scores.operand});
}

void ProgramBuilder::exponentiate(TileRef scores, TileRef row_max) {
  add({.op = Op::exponentiate, .result = scores.operand, .a = row_max.operand});
}

void ProgramBuilder::rescale(TileRef tile, TileRef factor) {
  add({.op = Op::rescale, .result = tile.operand, .a = factor.operand});
}

void ProgramBuilder::row_sum_update(TileRef row_sum, TileRef probabilities) {
  add({.op = Op::row_sum_update, .result = row_sum.operand, .a = probabilities.operand});
}

void ProgramBuilder::scale_add(TileRef sum, TileRef factor, TileRef tile) {
  add({.op = Op::scale_add, .result = sum.operand, .a = factor.operand, .b = tile.operand});
}

void ProgramBuilder::divide(TileRef tile, TileRef row_sum) {
  add({.op = Op::divide, .result = tile.operand, .a = row_sum.operand});
}

TileRef ProgramBuilder::lse(RowState row) {
  const TileRef result = zeros("lse", TileRole::statistic, declaration(row.max).rows, kColumn);
  add({.op = Op::lse, .result = result.operand, .a = row.max.operand, .b = row.sum.operand});
  return result;
}

TileRef ProgramBuilder::row_dot(const std::string& name, TileRef a, TileRef b) {
  const TileRef result = zeros(name, TileRole::statistic, declaration(a).rows, kColumn);
  add({.op = Op::row_dot, .result = result.operand, .a = a.operand, .b = b.operand});
  return result;
}

void ProgramBuilder::softmax_gradient(TileRef gradients, TileRef probabilities, TileRef delta) {
  add({.op = Op::softmax_gradient,
       .result = gradients.operand,
       .a = probabilities.operand,
       .b = delta.operand});
}

void ProgramBuilder::logits_gradient(TileRef gradients) {
  add({.op = Op::logits_gradient, .result = gradients.operand});
}

void ProgramBuilder::logits_gradient(TileRef gradients, TileRef q, TileRef k) {
  add({.op = Op::logits_gradient, .result = gradients.operand, .a = q.operand, .b = k.operand});
}

TileRef ProgramBuilder::update_rows(RowState row, TileRef s) {
  const TileRef factor = row_max_update(row.max, s);
  exponentiate(s, row.max);
  rescale(row.sum, factor);
  row_sum_update(row.sum, s);
  return factor;
}

void ProgramBuilder::fold(RowState row, TileRef o, TileRef s, TileRef v) {
  rescale(o, update_rows(row, s));
  multiply(o, s, v);
}

Program ProgramBuilder::build() const {
  validate(program_);
  return program_;
}

void ProgramBuilder::add(Statement statement) { scopes_.back()->push_back(std::move(statement)); }

int ProgramBuilder::declare(TileDecl declaration) {
  program_.tiles.push_back(std::move(declaration));
  return static_cast<int>(program_.tiles.size()) - 1;
}

const TileDecl& ProgramBuilder::declaration(TileRef tile) const {
  return program_.tiles.at(static_cast<std::size_t>(tile.operand.tile));
}

}  // namespace flashbound
