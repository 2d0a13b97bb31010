// GO-05: what a tile's two sizes do when they change places.
#include "experiments/numerics/golden.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace flashbound {
namespace {

constexpr std::array<Index, 3> kSizes{16, 64, 256};
constexpr std::size_t kCount = kSizes.size();
constexpr std::size_t kSeeds = 3;
constexpr Index kRows = 256;  // so that the largest block of queries is full
constexpr Index kKeys = 2048;
constexpr Index kHeadDim = 64;
constexpr double kRaised = 1.1;  // a ratio of deviations that is taken for a rise

// Of one comparison and seed, by block_q, then block_kv.
struct Grid {
  std::array<std::array<double, kCount>, kCount> max_abs{};
  // Whether O has the same bits as with the first block_q and the same block_kv.
  std::array<std::array<bool, kCount>, kCount> same_bits{};
};

Grid grid_of(const Comparison& comparison, const HeadCase& head) {
  std::array<std::vector<double>, kCount> first;  // O by block_kv
  Grid result;
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t kv = 0; kv < kCount; ++kv) {
      const std::vector<double> o =
          numeric_output(comparison.flash, comparison.flash_recipe, head.problem,
                         {kSizes[q], kSizes[kv]}, head.inputs.view());
      if (q == 0) first[kv] = o;
      result.same_bits[q][kv] = o == first[kv];
      result.max_abs[q][kv] = deviation(o, head.exact).max_abs;
    }
  }
  return result;
}

using Grids = std::array<Grid, kSeeds>;

double median_max_abs(const Grids& seeds, std::size_t q, std::size_t kv) {
  std::vector<double> values;
  for (const Grid& seed : seeds) values.push_back(seed.max_abs[q][kv]);
  return median(values);
}

// Of one comparison: what swaps that make block_kv smaller do to the deviation, as ratios. Their
// way back is the inverse.
struct Swaps {
  std::string_view arithmetic{};
  std::vector<double> ratios{};
  double low() const { return *std::min_element(ratios.begin(), ratios.end()); }
  double high() const { return *std::max_element(ratios.begin(), ratios.end()); }
  bool raise() const { return low() >= kRaised; }
};

struct Findings {
  std::size_t tiles = 0;
  std::size_t changed_by_block_q = 0;  // tiles where block_q changes a bit of O
  std::vector<Swaps> swaps{};          // by comparison
};

void add_comparison(const Comparison& comparison, const Grids& seeds, ClaimTable& table,
                    Findings& found) {
  Swaps swaps{.arithmetic = comparison.name};
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t kv = 0; kv < kCount; ++kv) {
      const double given = median_max_abs(seeds, q, kv);
      const double swapped = median_max_abs(seeds, kv, q);
      const bool same = std::all_of(seeds.begin(), seeds.end(),
                                    [&](const Grid& seed) { return seed.same_bits[q][kv]; });
      ++found.tiles;
      found.changed_by_block_q += same ? 0 : 1;
      if (q < kv) swaps.ratios.push_back(swapped / given);
      table.rows.push_back({std::string(comparison.name), std::to_string(kSizes[q]),
                            std::to_string(kSizes[kv]), scientific(given), scientific(swapped),
                            plain(swapped / given), same ? "same" : "differ"});
    }
  }
  found.swaps.push_back(std::move(swaps));
}

std::size_t raising(const Findings& found) {
  return static_cast<std::size_t>(std::count_if(found.swaps.begin(), found.swaps.end(),
                                                [](const Swaps& s) { return s.raise(); }));
}

// Where block_q changes no bit, a swap that raises the deviation lowers it on the way back, and
// no more than one direction of the claim can hold.
Verdict verdict(const Findings& found) {
  if (raising(found) == 0) return Verdict::refuted;
  const bool of_its_own = found.changed_by_block_q > 0;
  return of_its_own && raising(found) == found.swaps.size() ? Verdict::confirmed
                                                            : Verdict::qualified;
}

std::string argument(const Findings& found) {
  std::string text = fmt::format(
      "Medians over {} seeds of the largest deviation from the reference in fp64 (standard normal "
      "inputs in bf16, {} queries, seqlen_kv {}, head_dim {}). ",
      kSeeds, kRows, kKeys, kHeadDim);
  text += found.changed_by_block_q == 0
              ? fmt::format(
                    "In none of {} tiles does block_q change a bit of O: every row is "
                    "computed alone. A swap is therefore nothing but a change of block_kv "
                    "(GO-04), without an effect of its own; of a square tile it is none. ",
                    found.tiles)
              : fmt::format("In {} of {} tiles block_q changes bits of O. ",
                            found.changed_by_block_q, found.tiles);
  text += "Swaps that make block_kv smaller multiply the deviation by ";
  for (const Swaps& swaps : found.swaps) {
    text += fmt::format("{} to {} ({}{}), ", plain(swaps.low()), plain(swaps.high()),
                        swaps.arithmetic, swaps.raise() ? ": a rise" : "");
  }
  text += "and their way back by the inverse. ";
  text += raising(found) > 0 ? fmt::format(
                                   "So the published rise is seen in {} of {} arithmetics, "
                                   "and there for one direction of the swap only.",
                                   raising(found), found.swaps.size())
                             : "No arithmetic shows the published rise.";
  return text;
}

}  // namespace

ClaimResult swapped_block_sizes(const ParallelFor& parallel_for) {
  const std::vector<Comparison> comparisons = bf16_comparisons();
  std::vector<Grids> grids(comparisons.size());
  parallel_for(static_cast<Index>(comparisons.size() * kSeeds), [&](Index part) {
    const std::size_t c = static_cast<std::size_t>(part) / kSeeds;
    const std::size_t seed = static_cast<std::size_t>(part) % kSeeds;
    grids[c][seed] = grid_of(comparisons[c], head_case("normal", kRows, kKeys, kHeadDim,
                                                       float_format(NumberFormat::bf16), seed + 1));
  });
  ClaimTable table{.columns = {"arithmetic", "block_q", "block_kv", "max_abs", "swapped_max_abs",
                               "swapped_over_given", "bits_as_with_block_q_16"},
                   .rows = {}};
  Findings found;
  for (std::size_t c = 0; c < comparisons.size(); ++c)
    add_comparison(comparisons[c], grids[c], table, found);
  return {std::move(table), verdict(found), argument(found)};
}

}  // namespace flashbound
