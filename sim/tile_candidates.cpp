#include "sim/tile_candidates.hpp"

#include "core/programs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace flashbound {
namespace {

// What a search may cost: seconds. The unit is a closed form of one sequence under a band.
constexpr Int128 kWorkMax = Int128{1} << 23;
// Cells of a block mask that are looked at in that time, measured.
constexpr Int128 kCellsOfAForm = 64;
// Sizes on an axis where there would be more than can be tried: at most, and at least.
constexpr std::size_t kSizesMost = 4096;
constexpr std::size_t kSizesLeast = 16;

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

void sort_once(std::vector<Index>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// A block mask is looked at once, and once more along the keys for every block of queries.
Int128 work(const TileCandidates& candidates, const Problem& problem, bool looks_at_mask) {
  Int128 forms = 0;
  for (const Index block_q : candidates.block_q) {
    forms += problem.cu_seqlens_q.empty() ? 1 : sequence_count(problem);
    if (!problem.block_mask || !looks_at_mask) continue;
    const Int128 rows = problem.block_mask->rows + Partition{problem.seqlen_q, block_q}.count();
    forms += rows * problem.block_mask->cols / kCellsOfAForm;
  }
  return forms * static_cast<Int128>(candidates.block_kv.size());
}

// The lengths of the sequences along one axis, ascending, each once.
std::vector<Index> lengths(const Problem& problem, Index Sequence::*length) {
  std::vector<Index> all;
  const Index distinct = problem.cu_seqlens_q.empty() ? 1 : sequence_count(problem);
  for (Index s = 0; s < distinct; ++s) all.push_back(sequence(problem, s).*length);
  sort_once(all);
  return all;
}

std::vector<Index> every_size(Index length) {
  std::vector<Index> sizes(static_cast<std::size_t>(std::max<Index>(length, 1)));
  std::iota(sizes.begin(), sizes.end(), Index{1});
  return sizes;
}

// The least size for each way to cut all of `lengths`.
std::vector<Index> distinct_sizes(const std::vector<Index>& lengths) {
  std::vector<Index> sizes{1};
  for (const Index length : lengths) {
    const std::vector<Index> its = distinct_block_sizes(length);
    sizes.insert(sizes.end(), its.begin(), its.end());
  }
  sort_once(sizes);
  return sizes;
}

// At most `most` of them, evenly spread, the ends among them.
std::vector<Index> spread(const std::vector<Index>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<Index> some;
  for (std::size_t s = 0; s < most; ++s) some.push_back(all[s * (all.size() - 1) / (most - 1)]);
  return some;
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
  const Sensitivity sensitivity = sensitivity_of(algorithm);
  const Matters what = sensitivity.what;
  const bool masked =
      problem.window_left >= 0 || problem.window_right >= 0 || problem.block_mask.has_value();
  std::vector<Index> lengths_q{1};
  std::vector<Index> lengths_kv{1};
  if (what == Matters::block_q || what == Matters::both) {
    lengths_q = lengths(problem, &Sequence::seqlen_q);
  }
  if (what == Matters::block_kv || what == Matters::both) {
    lengths_kv = lengths(problem, &Sequence::seqlen_kv);
  }
  // Blocks of keys that are blocks of output columns as well.
  if (what == Matters::both) {
    lengths_kv.push_back(problem.head_dim_v);
    sort_once(lengths_kv);
  }
  const auto affordable = [&](const TileCandidates& candidates) {
    return work(candidates, problem, sensitivity.looks_at_mask) <= kWorkMax;
  };
  TileCandidates candidates;
  const bool every = sensitivity.looks_at_mask && masked;
  if (every && Int128{lengths_q.back()} * lengths_kv.back() <= kWorkMax) {
    candidates = {every_size(lengths_q.back()), every_size(lengths_kv.back()), true};
    if (affordable(candidates)) return candidates;
  }
  candidates = {distinct_sizes(lengths_q), distinct_sizes(lengths_kv), !every};
  for (std::size_t most = kSizesMost; most >= kSizesLeast && !affordable(candidates); most /= 2) {
    candidates = {spread(candidates.block_q, most), spread(candidates.block_kv, most), false};
  }
  return candidates;
}

}  // namespace flashbound
