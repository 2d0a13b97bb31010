// Which tiles a search has to look at.
//
// From the closed forms (core/closed_forms.md), for any mask:
//   - panel = 1 and num_splits = 1: more of either adds to traffic or to residency, and takes from
//     neither.
//   - flash1 and its kin, keys outer: everything that travels is proportional to row_visits, the
//     sum of r_i n_i, which is least with block_q = 1 (each query then visits just the blocks that
//     it sees), as the residency is. block_kv decides.
//   - flash2 and split-kv: traffic depends on key_visits, which is least with block_kv = 1 (a block
//     of queries then visits just the keys that it sees), as the residency is. block_q decides.
//   - standard-tiled looks at no mask and reads K and V once a block of queries: block_kv = 1.
//   - standard and standard-backward move the same whatever the tile: one row at a time is least.
//   - rabe-staats (fewer, larger blocks of keys leave fewer summaries) and small-cache (whose
//     blocks of keys are blocks of output columns too) depend on both.
// The kernel footprint grows with every parameter but rabe-staats' number of summaries, so that the
// same holds for it, whatever its stages.
// Without a mask only the numbers of blocks matter for traffic, and of the sizes that cut every
// sequence (and head_dim_v) into the same numbers the least has the least residency: about
// 2 sqrt(N) sizes on an axis for a length N. With a mask edges fall differently for every size, so
// that all sizes up to the longest sequence are looked at.
// A search is cut to seconds of work: 2^23 closed forms of one sequence. Packed sequences are a
// form each, and a block mask counts by the cells that are looked at. Where all sizes would be
// more, those that cut the lengths differently stand for them, then an even spread of those, and
// the result does not claim to be the best.
#pragma once

#include "core/problem.hpp"

#include <string_view>
#include <vector>

namespace flashbound {

struct TileCandidates {
  std::vector<Index> block_q;
  std::vector<Index> block_kv;
  bool all = true;  // some candidate is as good as any tile, at every size of fast memory
};

// Throws ConfigError for a name that no algorithm has.
TileCandidates tile_candidates(std::string_view algorithm, const Problem& problem);

// The least block size for each number of blocks that `length` can be cut into, ascending.
std::vector<Index> distinct_block_sizes(Index length);

}  // namespace flashbound
