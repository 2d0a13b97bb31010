// Writes programs: ordinary C++ lambdas are traced once with symbolic block indices, so that the
// source of an algorithm reads like the paper's listing. build() validates.
#pragma once

#include "core/program.hpp"

#include <functional>
#include <string>
#include <vector>

namespace flashbound {

// The index of a traced loop; stands for its block wherever an extent is wanted.
struct LoopIndex {
  int loop = kNone;
  Axis axis = Axis::one;
  operator Extent() const { return {axis, loop}; }  // NOLINT(google-explicit-constructor)
};

inline constexpr Extent whole(Axis axis) { return {axis, kNone}; }
inline constexpr Extent kColumn{Axis::one, kNone};  // the one column of a vector of rows

struct TensorRef {
  int tensor = kNone;
};

struct TileRef {
  Operand operand;
  // The copy of a copied tile that belongs to the block of loop `index`.
  TileRef at(LoopIndex index) const { return {{operand.tile, index.loop}}; }
};

// Row statistics of the online softmax: running maximum and running sum of exponentials.
struct RowState {
  TileRef max;
  TileRef sum;
  RowState at(LoopIndex index) const { return {max.at(index), sum.at(index)}; }
};

// What row statistics begin with: nothing seen, or the sink (a logit without a value) seen.
enum class RowStart { nothing, sink };

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) { program_.name = std::move(name); }

  // Q (query, head_dim), K (key, head_dim), V (key, head_dim_v) as the algorithms name them.
  TensorRef q() { return input("q", {Axis::query, Axis::head_dim}); }
  TensorRef k() { return input("k", {Axis::key, Axis::head_dim}); }
  TensorRef v() { return input("v", {Axis::key, Axis::head_dim_v}); }
  // O (query, head_dim_v) and lse (query, one) as outputs; an HBM matrix (query, key) that one
  // kernel writes for another.
  TensorRef o();
  TensorRef lse_output();
  // dQ, dK or dV: as wide as the data, `initial` before the first kernel.
  TensorRef gradient(const std::string& name, std::vector<Axis> axes,
                     Content initial = Content::undefined);
  TensorRef intermediate_scores(const std::string& name);
  TensorRef input(const std::string& name, std::vector<Axis> axes);
  TensorRef row_input(const std::string& name);  // a row statistic that another pass left
  TensorRef tensor(TensorDecl declaration);

  using Body = std::function<void()>;
  using LoopBody = std::function<void(LoopIndex)>;
  void kernel(const std::string& label, const Body& body);
  void loop(const std::string& name, LoopRange range, const LoopBody& body);

  TileRef load(TensorRef tensor, std::vector<Extent> region, TileRole role = TileRole::operand);
  void store(TensorRef tensor, std::vector<Extent> region, TileRef tile);
  TileRef allocate(TileDecl declaration, Content fill = Content::zero);
  TileRef zeros(const std::string& name, TileRole role, Extent rows, Extent cols);
  // Row statistics for the rows of `rows`; with `copies`, one pair for each block of that range.
  RowState row_state(Extent rows, RowStart start);
  RowState row_state_copies(Extent rows, LoopRange copies);
  void release(TileRef tile);

  TileRef scores(TileRef q, TileRef k);  // q k^T in a tile of its own, no scale or mask yet
  void multiply_transposed(TileRef sum, TileRef a, TileRef b);
  void multiply(TileRef sum, TileRef a, TileRef b);
  void multiply_left_transposed(TileRef sum, TileRef a, TileRef b);  // sum += a^T b
  void logits(TileRef scores);
  // m = max(m, row maxima); returns exp(m_old - m).
  TileRef row_max_update(TileRef row_max, TileRef scores);
  void row_max_first(TileRef row_max, TileRef scores);  // where nothing has to be rescaled
  void exponentiate(TileRef scores, TileRef row_max);
  void rescale(TileRef tile, TileRef factor);
  void row_sum_update(TileRef row_sum, TileRef probabilities);
  void scale_add(TileRef sum, TileRef factor, TileRef tile);
  void divide(TileRef tile, TileRef row_sum);
  TileRef lse(RowState row);

  TileRef row_dot(const std::string& name, TileRef a, TileRef b);  // a column of row sums of a o b
  // dP in `gradients` becomes dL; dL becomes dS, given Q and K where softcap must be known.
  void softmax_gradient(TileRef gradients, TileRef probabilities, TileRef delta);
  void logits_gradient(TileRef gradients);
  void logits_gradient(TileRef gradients, TileRef q, TileRef k);

  // m and l over the logits in `s`, which become exp(s - m); returns the factor exp(m_old - m).
  TileRef update_rows(RowState row, TileRef s);
  // Online softmax, one step: maximum, exponentials, sum, rescaled accumulator, product.
  void fold(RowState row, TileRef o, TileRef s, TileRef v);

  Program build() const;

 private:
  void add(Statement statement);
  int declare(TileDecl declaration);
  const TileDecl& declaration(TileRef tile) const;

  Program program_;
  std::vector<std::vector<Statement>*> scopes_{&program_.body};
};

}  // namespace flashbound
