#include "core/problem.hpp"

#include "core/errors.hpp"

#include <cmath>
#include <string>

namespace flashbound {
namespace {

// Ceilings that keep every exact count within 127 bits: 2^24 x 2^16 x (2^32)^2 x 2^10 x 2^2.
constexpr Index kBatchMax = Index{1} << 24;
constexpr Index kHeadsMax = Index{1} << 16;
constexpr Index kSeqlenMax = Index{1} << 32;
constexpr Index kHeadDimMax = 576;

std::string range(Index low, Index high) {
  return "in [" + std::to_string(low) + ", " + std::to_string(high) + "]";
}

void require_in(const char* field, Index value, Index low, Index high) {
  if (value < low || value > high) reject(field, std::to_string(value), range(low, high));
}

void require_window(const char* field, Index value) {
  if (value < kUnbounded || value > kSeqlenMax) {
    reject(field, std::to_string(value),
           "-1 (unlimited) or in [0, " + std::to_string(kSeqlenMax) + "]");
  }
}

void require_finite(const char* field, double value) {
  if (!std::isfinite(value)) reject(field, std::to_string(value), "finite");
}

void require_one_per_head(const char* field, const std::vector<double>& values, Index heads) {
  if (values.empty()) return;
  if (static_cast<Index>(values.size()) != heads) {
    reject(field, std::to_string(values.size()) + " values",
           "one value per query head (" + std::to_string(heads) + ")");
  }
  for (const double value : values) require_finite(field, value);
}

void require_cu_seqlens(const char* field, const std::vector<Index>& cu, Index total) {
  if (cu.front() != 0) reject(field, "first entry " + std::to_string(cu.front()), "0");
  for (std::size_t s = 1; s < cu.size(); ++s) {
    if (cu[s] < cu[s - 1]) {
      reject(field, "entry " + std::to_string(s) + " = " + std::to_string(cu[s]),
             "at least the entry before it (" + std::to_string(cu[s - 1]) + ")");
    }
  }
  if (cu.back() != total) {
    reject(field, "last entry " + std::to_string(cu.back()),
           "the packed length " + std::to_string(total));
  }
}

void validate_packing(const Problem& problem) {
  const auto& cu_q = problem.cu_seqlens_q;
  const auto& cu_kv = problem.cu_seqlens_kv;
  if (cu_q.empty() && cu_kv.empty()) return;
  if (cu_q.size() != cu_kv.size()) {
    reject("cu_seqlens_kv", std::to_string(cu_kv.size()) + " entries",
           "as long as cu_seqlens_q (" + std::to_string(cu_q.size()) + " entries)");
  }
  require_cu_seqlens("cu_seqlens_q", cu_q, problem.seqlen_q);
  require_cu_seqlens("cu_seqlens_kv", cu_kv, problem.seqlen_kv);
  if (problem.batch != 1) {
    reject("batch", std::to_string(problem.batch), "1 with cu_seqlens (sequences are packed)");
  }
}

void validate_block_mask(const Problem& problem) {
  if (!problem.block_mask) return;
  const BlockMask& mask = *problem.block_mask;
  require_in("block_mask.block_q", mask.block_q, 1, kSeqlenMax);
  require_in("block_mask.block_kv", mask.block_kv, 1, kSeqlenMax);
  if (!problem.cu_seqlens_q.empty()) {
    reject("block_mask", "given", "absent with cu_seqlens (one mask cannot fit several lengths)");
  }
  const Index rows = Partition{problem.seqlen_q, mask.block_q}.count();
  const Index cols = Partition{problem.seqlen_kv, mask.block_kv}.count();
  if (mask.rows != rows || mask.cols != cols ||
      static_cast<Index>(mask.cells.size()) != rows * cols) {
    reject("block_mask", std::to_string(mask.rows) + " x " + std::to_string(mask.cols) + " cells",
           std::to_string(rows) + " x " + std::to_string(cols) + " for these lengths");
  }
}

}  // namespace

void validate(const Problem& problem, Emptiness emptiness) {
  const Index least = emptiness == Emptiness::allowed ? 0 : 1;
  require_in("batch", problem.batch, least, kBatchMax);
  require_in("num_heads_q", problem.num_heads_q, 1, kHeadsMax);
  require_in("num_heads_kv", problem.num_heads_kv, 1, kHeadsMax);
  if (problem.num_heads_q % problem.num_heads_kv != 0) {
    reject("num_heads_q", std::to_string(problem.num_heads_q),
           "a multiple of num_heads_kv = " + std::to_string(problem.num_heads_kv));
  }
  require_in("seqlen_q", problem.seqlen_q, least, kSeqlenMax);
  require_in("seqlen_kv", problem.seqlen_kv, least, kSeqlenMax);
  require_in("head_dim", problem.head_dim, 1, kHeadDimMax);
  require_in("head_dim_v", problem.head_dim_v, 1, kHeadDimMax);
  require_window("window_left", problem.window_left);
  require_window("window_right", problem.window_right);
  if (problem.softmax_scale) require_finite("softmax_scale", *problem.softmax_scale);
  if (!std::isfinite(problem.softcap) || problem.softcap < 0) {
    reject("softcap", std::to_string(problem.softcap), "0 (none) or a positive number");
  }
  require_one_per_head("alibi_slopes", problem.alibi_slopes, problem.num_heads_q);
  require_one_per_head("sink", problem.sink, problem.num_heads_q);
  validate_packing(problem);
  validate_block_mask(problem);
}

void validate(const Tile& tile) {
  require_in("block_q", tile.block_q, 1, kSeqlenMax);
  require_in("block_kv", tile.block_kv, 1, kSeqlenMax);
  require_in("panel", tile.panel, 1, tile.block_kv);
  // Else a visible panel could reach into a block of scores that was never written.
  if (tile.block_kv % tile.panel != 0) {
    reject("panel", std::to_string(tile.panel),
           "a divisor of block_kv = " + std::to_string(tile.block_kv));
  }
  require_in("num_splits", tile.num_splits, 1, kSeqlenMax);
}

double softmax_scale(const Problem& problem) {
  return problem.softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(problem.head_dim)));
}

Index sequence_count(const Problem& problem) {
  return problem.cu_seqlens_q.empty() ? problem.batch
                                      : static_cast<Index>(problem.cu_seqlens_q.size()) - 1;
}

Sequence sequence(const Problem& problem, Index s) {
  if (problem.cu_seqlens_q.empty()) return {s, 0, 0, problem.seqlen_q, problem.seqlen_kv};
  const auto at = static_cast<std::size_t>(s);
  const Index q_begin = problem.cu_seqlens_q[at];
  const Index kv_begin = problem.cu_seqlens_kv[at];
  return {0, q_begin, kv_begin, problem.cu_seqlens_q[at + 1] - q_begin,
          problem.cu_seqlens_kv[at + 1] - kv_begin};
}

Schedule schedule_for(const Problem& problem, const Tile& tile, const Sequence& sequence) {
  const Shape shape{sequence.seqlen_q, sequence.seqlen_kv, problem.head_dim, problem.head_dim_v};
  Mask mask{problem.window_left, problem.window_right, {}};
  if (problem.block_mask) mask.blocks = problem.block_mask->view();
  return {shape, mask, tile};
}

std::vector<double> alibi_slopes(Index num_heads) {
  const auto power_of_two_slopes = [](Index n) {
    std::vector<double> slopes;
    for (Index h = 1; h <= n; ++h) {
      slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(n)));
    }
    return slopes;
  };
  Index power = 1;
  while (power * 2 <= num_heads) power *= 2;
  std::vector<double> slopes = power_of_two_slopes(power);
  const std::vector<double> finer = power_of_two_slopes(2 * power);
  for (std::size_t k = 0; static_cast<Index>(slopes.size()) < num_heads; k += 2) {
    slopes.push_back(finer[k]);
  }
  return slopes;
}

}  // namespace flashbound
