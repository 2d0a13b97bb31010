#include "sim/tile_candidates.hpp"

#include "core/programs.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

namespace flashbound {
namespace {

// Tiles of an algorithm that are all evaluated: seconds.
constexpr Int128 kTilesMax = Int128{1} << 23;
// Sizes on an axis where there would be more.
constexpr std::size_t kSizesMax = 1024;

enum class Matters { nothing, block_q, block_kv, both };

struct Sensitivity {
  std::string_view algorithm;
  Matters what;
  bool looks_at_mask = true;
};

constexpr std::array kSensitivities{
    Sensitivity{"standard", Matters::nothing, false},
    Sensitivity{"standard-tiled", Matters::block_q, false},
    Sensitivity{"rabe-staats", Matters::both},
    Sensitivity{"flash1", Matters::block_kv},
    Sensitivity{"flash1-charged-start", Matters::block_kv},
    Sensitivity{"flash1-skip-first-read", Matters::block_kv},
    Sensitivity{"flash2", Matters::block_q},
    Sensitivity{"split-kv", Matters::block_q},
    Sensitivity{"small-cache", Matters::both},
    Sensitivity{"small-cache-spill-both", Matters::both},
    Sensitivity{"standard-backward", Matters::nothing, false},
    Sensitivity{"flash1-backward", Matters::block_kv},
    Sensitivity{"flash2-backward", Matters::block_kv},
};

// An algorithm that is not in the table: everything may matter.
Sensitivity sensitivity_of(std::string_view algorithm) {
  for (const Sensitivity& s : kSensitivities) {
    if (s.algorithm == algorithm) return s;
  }
  return {algorithm_named(algorithm).name, Matters::both};
}

std::vector<Index> every_size(Index length) {
  std::vector<Index> sizes(static_cast<std::size_t>(std::max<Index>(length, 1)));
  std::iota(sizes.begin(), sizes.end(), Index{1});
  return sizes;
}

// Evenly spread, the ends among them.
std::vector<Index> spread(const std::vector<Index>& all) {
  if (all.size() <= kSizesMax) return all;
  std::vector<Index> some;
  for (std::size_t s = 0; s < kSizesMax; ++s) {
    some.push_back(all[s * (all.size() - 1) / (kSizesMax - 1)]);
  }
  return some;
}

std::vector<Index> merged(const std::vector<Index>& a, const std::vector<Index>& b) {
  std::vector<Index> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

std::vector<Index> distinct_block_sizes(Index length) {
  std::vector<Index> sizes;
  Index blocks = length;
  while (blocks > 0) {
    const Index size = Partition{length, blocks}.count();
    sizes.push_back(size);
    blocks = Partition{length, size}.count() - 1;  // fewer blocks need a larger size
  }
  return sizes;
}

TileCandidates tile_candidates(std::string_view algorithm, const Problem& problem) {
  const auto [name, what, looks_at_mask] = sensitivity_of(algorithm);
  const bool q_matters = what == Matters::block_q || what == Matters::both;
  const bool kv_matters = what == Matters::block_kv || what == Matters::both;
  const bool masked =
      problem.window_left >= 0 || problem.window_right >= 0 || problem.block_mask.has_value();
  const bool every = (looks_at_mask && masked) || !problem.cu_seqlens_q.empty();
  const Int128 tiles = Int128{q_matters ? problem.seqlen_q : 1} *
                       (kv_matters ? std::max(problem.seqlen_kv, problem.head_dim_v) : 1);
  TileCandidates candidates;
  candidates.all = !every || tiles <= kTilesMax;
  const auto sizes = [&](Index length) {
    return every && candidates.all ? every_size(length) : distinct_block_sizes(length);
  };
  candidates.block_q = q_matters ? sizes(problem.seqlen_q) : std::vector<Index>{1};
  candidates.block_kv = kv_matters ? sizes(problem.seqlen_kv) : std::vector<Index>{1};
  // Blocks of keys that are blocks of output columns as well.
  if (what == Matters::both) {
    candidates.block_kv = merged(candidates.block_kv, sizes(problem.head_dim_v));
  }
  const auto chosen = static_cast<Int128>(candidates.block_q.size()) *
                      static_cast<Int128>(candidates.block_kv.size());
  if (chosen > kTilesMax) {
    candidates.all = false;
    candidates.block_q = spread(candidates.block_q);
    candidates.block_kv = spread(candidates.block_kv);
  }
  return candidates;
}

}  // namespace flashbound
