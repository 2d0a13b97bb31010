// The small language in which every algorithm is written once, as data: a loop nest over a
// schedule's block ranges with a closed vocabulary of tile operations. Machines interpret it.
//
// A program describes one head of one sequence. Sizes are symbolic: a tile's extents name an axis,
// whole or the block of a loop, so that the same program serves every shape, mask and tile.
#pragma once

#include <string>
#include <vector>

namespace flashbound {

enum class Axis { one, query, key, head_dim, head_dim_v, split };

// The block ranges that a loop may run over. Those with an index argument depend on an enclosing
// loop: `of` names it, `split` names the enclosing loop over splits.
enum class RangeKind {
  all_q_blocks,             // every block of block_q queries
  all_kv_blocks,            // every block of block_kv keys, masked or not
  visible_kv_blocks,        // Schedule::kv_blocks(of)
  visible_kv_blocks_split,  // Schedule::kv_blocks(of, split)
  visible_q_blocks,         // Schedule::q_blocks(of)
  starting_q_blocks,        // Schedule::q_blocks_starting_at(of)
  continuing_q_blocks,      // Schedule::q_blocks_continuing_at(of)
  q_blocks_without_keys,    // Schedule::q_blocks_without_keys()
  visible_key_panels,       // Schedule::with_key_panels().kv_blocks(of): panels of `panel` keys
  head_dim_panels,          // head_dim in panels of `panel`
  head_dim_v_blocks,        // head_dim_v in blocks of block_kv
  splits,                   // 0 .. num_splits
};

inline constexpr int kNone = -1;

struct LoopRange {
  RangeKind kind = RangeKind::all_q_blocks;
  int of = kNone;     // loop whose block the range is seen from
  int split = kNone;  // loop over splits
  friend bool operator==(const LoopRange&, const LoopRange&) = default;
};

// Along one axis: the block of loop `loop`, or the whole axis.
struct Extent {
  Axis axis = Axis::one;
  int loop = kNone;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// What a tile's numbers are, which decides their width in a kernel's footprint.
enum class TileRole { operand, score, statistic, accumulator };

struct TileDecl {
  std::string name;
  TileRole role = TileRole::operand;
  Extent rows{};
  Extent cols{};
  // With a range: one copy for each of its blocks, all resident together.
  bool copied = false;
  LoopRange copies{};
  friend bool operator==(const TileDecl&, const TileDecl&) = default;
};

// Where a tensor's bytes come from: inputs exist, intermediates and outputs are stored first,
// unless they begin with a known content (a memset before the kernel, which no count charges).
enum class TensorRole { input, intermediate, output };
enum class Content { undefined, zero, negative_infinity, sink_max, sink_sum };
// Which width an element has in HBM: that of --dtype, of row statistics, of partial results.
enum class Width { data, statistic, partial };

struct TensorDecl {
  std::string name;
  TensorRole role = TensorRole::input;
  Width width = Width::data;
  Content initial = Content::undefined;
  std::vector<Axis> axes{};  // two axes (rows, cols), or three with a leading split axis
  friend bool operator==(const TensorDecl&, const TensorDecl&) = default;
};

struct LoopDecl {
  std::string name;
  LoopRange range{};
  friend bool operator==(const LoopDecl&, const LoopDecl&) = default;
};

enum class Op {
  kernel,               // body; a kernel boundary on either side: no tile outlives it
  loop,                 // body once for each block of the loop's range
  load,                 // result <- tensor[region]; result becomes resident
  store,                // tensor[region] <- a
  allocate,             // result becomes resident, filled with `fill`
  release,              // a leaves fast memory before the end of its scope
  multiply_transposed,  // result += a b^T
  multiply,             // result += a b
  logits,               // result: scaled, soft-capped, biased, -inf where masked; in place
  row_max_update,       // result = max(result, row maxima of a); b = exp(old - new) if given
  exponentiate,         // result = exp(result - a), row by row; in place
  rescale,              // result = diag(a) result; rows whose factor is 1 may be left alone
  row_sum_update,       // result += row sums of a
  scale_add,            // result += diag(a) b
  divide,               // result = diag(a)^-1 result; rows with a = 0 become 0
  lse,                  // result = a + log b, with a row maxima and b row sums
  // Of the backward pass.
  multiply_left_transposed,  // result += a^T b
  row_dot,                   // result = row sums of a o b
  softmax_gradient,  // result = a o (result - b), 0 where masked; a = P, b = delta; in place
  logits_gradient,   // result = result o d logit / d (q k^T), 0 where masked; in place. With
                     // a = Q, b = K of the scores, or neither: then no softcap is known
};

// A tile, or with `copy` the copy of a copied tile that belongs to that loop's block.
struct Operand {
  int tile = kNone;
  int copy = kNone;
  bool present() const { return tile != kNone; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Statement {
  Op op = Op::kernel;
  std::string label{};  // of a kernel
  int loop = kNone;     // of a loop statement
  int tensor = kNone;
  std::vector<Extent> region{};  // one extent an axis of the tensor
  Content fill = Content::zero;
  Operand result{};
  Operand a{};
  Operand b{};
  std::vector<Statement> body{};
  friend bool operator==(const Statement&, const Statement&) = default;
};

struct Program {
  std::string name;
  std::vector<TensorDecl> tensors;
  std::vector<TileDecl> tiles;
  std::vector<LoopDecl> loops;
  std::vector<Statement> body{};  // kernels
  friend bool operator==(const Program&, const Program&) = default;
};

// The axis that a range cuts.
Axis axis_of(RangeKind kind);

// Throws ConfigError naming the program, the statement ("kernel 1, statement 3: multiply") and
// what is wrong: an undefined or released tile, shapes that do not fit, a loop variable out of
// scope, a load of what was never stored, an output never stored.
void validate(const Program& program);

// JSON as documented in core/program_schema.md; from_json validates and reads back equal.
// from_json throws ConfigError for text that is not a program.
std::string to_json(const Program& program);
Program program_from_json(const std::string& text);

}  // namespace flashbound
