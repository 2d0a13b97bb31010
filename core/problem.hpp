// What attention is asked for: shapes, mask and score modifiers of one call. A plain value;
// validate() is the only place that judges it.
#pragma once

#include "core/schedule.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace flashbound {

// An owning block-sparse mask, the same for every head and sequence.
struct BlockMask {
  Index block_q = 64;
  Index block_kv = 64;
  Index rows = 0;
  Index cols = 0;
  std::vector<std::uint8_t> cells{};  // rows x cols, row-major; nonzero = visible

  BlockMaskView view() const { return {cells.data(), cols, block_q, block_kv}; }
  friend bool operator==(const BlockMask&, const BlockMask&) = default;
};

struct Problem {
  Index batch = 1;
  Index num_heads_q = 1;
  Index num_heads_kv = 1;  // divides num_heads_q; query head h reads head h / (ratio)
  Index seqlen_q = 0;      // queries; with cu_seqlens, of all packed sequences together
  Index seqlen_kv = 0;
  Index head_dim = 0;    // of Q and K
  Index head_dim_v = 0;  // of V and O
  Index window_left = kUnbounded;
  Index window_right = kUnbounded;  // 0 = causal
  std::optional<BlockMask> block_mask{};
  // Packed variable lengths: sequence s spans [cu[s], cu[s+1]). Both or neither; batch = 1.
  std::vector<Index> cu_seqlens_q{};
  std::vector<Index> cu_seqlens_kv{};
  std::optional<double> softmax_scale{};  // 1/sqrt(head_dim) where absent
  double softcap = 0;                     // c > 0: c tanh(s/c) before bias and mask; 0 = none
  std::vector<double> alibi_slopes{};     // one a query head; bias -slope |i + d - j|; empty = none
  std::vector<double> sink{};             // one a query head; a logit with no value; empty = none
  friend bool operator==(const Problem&, const Problem&) = default;
};

// One sequence: where it lies in the tensors, and its lengths.
struct Sequence {
  Index batch = 0;     // index along the batch axis
  Index q_begin = 0;   // first query along the sequence axis
  Index kv_begin = 0;  // first key
  Index seqlen_q = 0;
  Index seqlen_kv = 0;
  friend bool operator==(const Sequence&, const Sequence&) = default;
};

// Which way through attention: from Q, K and V to O, or from dO back to dQ, dK and dV.
enum class Pass { forward, backward };

// Whether lengths, batch and heads of zero are legal input (they are to compute, not to count).
enum class Emptiness { allowed, rejected };

// Throws ConfigError naming the field, its value and the allowed range.
void validate(const Problem& problem, Emptiness emptiness = Emptiness::rejected);
// Throws ConfigError for block sizes outside their range.
void validate(const Tile& tile);

double softmax_scale(const Problem& problem);
inline Index q_heads_per_kv_head(const Problem& problem) {
  return problem.num_heads_q / problem.num_heads_kv;
}

// How many sequences there are, and the s-th of them.
Index sequence_count(const Problem& problem);
Sequence sequence(const Problem& problem, Index s);

// The schedule of one head of one sequence. It views problem.block_mask: keep the problem alive.
Schedule schedule_for(const Problem& problem, const Tile& tile, const Sequence& sequence);

// Slopes of Press et al. 2022 (ALiBi, arXiv 2108.12409): 2^(-8h/n) for n a power of two, else
// those of the next lower power of two followed by every other slope of the next higher one.
std::vector<double> alibi_slopes(Index num_heads);

}  // namespace flashbound
