// One block of queries of one head against the keys it sees, in fp64: what the reference and the
// error bound both start from. Memory is O(seqlen_kv) a block.
#pragma once

#include "core/problem.hpp"
#include "core/schedule.hpp"
#include "core/tensor.hpp"

#include <Eigen/Core>

#include <optional>
#include <vector>

namespace flashbound {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Enough rows for matrix products to run near peak, few enough to keep memory small.
inline constexpr Tile kReferenceTile{.block_q = 64, .block_kv = 512};

// One query head of one sequence. Views its problem and inputs: keep them alive.
class Head {
 public:
  Head(const Problem& problem, const Inputs& inputs, const Sequence& sequence, Index head);

  const Problem& problem() const { return *problem_; }
  const Schedule& schedule() const { return schedule_; }  // with kReferenceTile
  double alibi_slope() const { return alibi_slope_; }     // 0 = none
  std::optional<double> sink() const { return sink_; }

  // Rows of this head, gathered whatever the strides.
  RowMatrix queries(Interval rows) const;
  RowMatrix keys(Interval rows) const;
  RowMatrix values(Interval rows) const;
  // The same rows as queries(), of another tensor of num_heads_q heads: O, dO.
  RowMatrix query_rows(const TensorView<const double>& tensor, Interval rows) const;

 private:
  const Problem* problem_;
  const Inputs* inputs_;
  Sequence sequence_;
  Index head_;
  Schedule schedule_;
  double alibi_slope_ = 0;
  std::optional<double> sink_;
};

struct QueryBlock {
  Interval rows{};            // queries, within the sequence
  Interval keys{};            // the columns of `logits`
  std::vector<Block> blocks;  // blocks of keys that some row sees
  RowMatrix logits;           // rows x keys; -inf where the mask hides the pair

  Index column(const Block& block) const { return block.span.begin - keys.begin; }
};

// Logits of `rows`, whose queries are `q`, over one block of keys, by the definition: scale,
// softcap, ALiBi, mask. With `slopes`, also d logit / d (q k^T), which is 0 where the mask hides
// the pair.
RowMatrix block_logits(const Head& head, const RowMatrix& q, Interval rows, const Block& keys,
                       RowMatrix* slopes = nullptr);

// Logits of query block i.
QueryBlock query_block(const Head& head, Index i);

// Adds weights x values(v) over the visible pairs to `sum`, where `weights` has the columns of
// block.logits. A hidden pair adds nothing, not even 0 x NaN.
void add_weighted_values(const Head& head, const QueryBlock& block, const RowMatrix& weights,
                         RowMatrix& sum);
// The same with |v|.
void add_weighted_magnitudes(const Head& head, const QueryBlock& block, const RowMatrix& weights,
                             RowMatrix& sum);

}  // namespace flashbound
