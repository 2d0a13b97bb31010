// Softmax of balls: the weights of a block of queries, up to a factor a row.
#pragma once

#include "core/exact/logits.hpp"

#include <vector>

namespace flashbound {

// Queries `rows` against all keys that one of them sees, after exponentiate().
struct WeightBlock {
  Interval rows{};
  Interval keys{};            // columns
  std::vector<Block> blocks;  // of keys, in increasing order
  PairLogits pairs;           // `logits` hold exp(logit - shift), 0 where hidden or vanishing
  std::vector<Ball> shifts;   // one a row
  std::vector<Ball> sums;     // of the weights of keys and sink; exactly 0 without any
  std::vector<bool> undefined;

  Index column(const Block& block) const { return block.span.begin - keys.begin; }
};

// Block i of queries, as `schedule` cuts them.
WeightBlock weight_block(const Head& head, const Schedule& schedule, Index i, bool with_slopes,
                         slong precision);

}  // namespace flashbound
