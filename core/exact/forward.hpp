// One block of queries of one head at the first precision, and what it left in doubt decided.
#pragma once

#include "core/exact.hpp"

namespace flashbound {

// Few enough queries that memory stays small beside 10^5 keys, enough to convert keys seldom.
inline constexpr Tile kExactTile{.block_q = 32, .block_kv = 512};

struct ExactBlock {
  Interval rows{};
  RowMatrix o;
  Eigen::VectorXd lse;
  std::vector<Index> undecided_o;  // row within the block x head_dim_v + column
  std::vector<Index> undecided_lse;
  int precision = 0;
};

// Query block i of kExactTile.
ExactBlock exact_block(const Head& head, Index i, const ExactOptions& options);

}  // namespace flashbound
