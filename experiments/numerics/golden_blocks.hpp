// Attention in tiles against its baseline over the size of key blocks: GO-01 and GO-04.
#pragma once

#include "experiments/numerics/golden.hpp"

namespace flashbound {

struct BlockSweep {
  std::vector<Comparison> comparisons{};
  std::vector<std::pair<Index, Index>> shapes{};  // seqlen_kv and head_dim
  std::vector<Index> blocks{};
  Index seeds = 3;
  Index rows = 128;
};

// Of one shape and seed.
struct BlockDeviations {
  std::vector<Deviation> baseline{};            // by comparison
  std::vector<std::vector<Deviation>> flash{};  // by comparison and block
};

// By shape, then seed.
std::vector<std::vector<BlockDeviations>> deviations_by_block(const BlockSweep& sweep,
                                                              const ParallelFor& parallel_for);

// The median over seeds of flash's measure over the baseline's; comparisons and block by index.
struct RatioOf {
  std::size_t flash = 0;
  std::size_t baseline = 0;
  std::size_t block = 0;
  double Deviation::*measure = &Deviation::max_abs;
};
double median_ratio(const std::vector<BlockDeviations>& seeds, const RatioOf& of);

}  // namespace flashbound
