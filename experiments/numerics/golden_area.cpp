// GO-04: deviation over the size of key blocks.
#include "experiments/numerics/golden_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace flashbound {
namespace {

constexpr double kStrongFall = -0.7;  // of Spearman's correlation of block_kv and deviation
constexpr double kNoteworthy = 1.1;   // the deviation of the smallest block over the largest one's

BlockSweep area_sweep() {
  return {.comparisons = bf16_comparisons(),
          .shapes = {{1024, 64}, {4096, 64}, {4096, 128}},
          .blocks = {16, 32, 64, 128, 256, 512, 1024}};
}

// Of one comparison and shape.
struct Trend {
  std::vector<double> ratios{};  // median over seeds, by block
  double correlation = 0;        // over blocks and seeds
  double fall = 0;               // first ratio over last
  bool falls() const { return correlation <= kStrongFall && fall >= kNoteworthy; }
};

Trend trend(const BlockSweep& s, const std::vector<BlockDeviations>& seeds, std::size_t c) {
  Trend result;
  std::vector<double> blocks;
  std::vector<double> ratios;
  for (std::size_t block = 0; block < s.blocks.size(); ++block) {
    result.ratios.push_back(median_ratio(seeds, {c, c, block}));
    for (const BlockDeviations& seed : seeds) {
      blocks.push_back(static_cast<double>(s.blocks[block]));
      ratios.push_back(seed.flash[c][block].max_abs / seed.baseline[c].max_abs);
    }
  }
  result.correlation = spearman(blocks, ratios);
  result.fall = result.ratios.front() / result.ratios.back();
  return result;
}

std::vector<std::string> area_row(const BlockSweep& s, std::size_t comparison, std::size_t shape,
                                  const Trend& trend) {
  std::vector<std::string> row{std::string(s.comparisons[comparison].name),
                               std::to_string(s.shapes[shape].first),
                               std::to_string(s.shapes[shape].second)};
  for (const double ratio : trend.ratios) row.push_back(plain(ratio));
  row.push_back(plain(trend.correlation));
  return row;
}

// One sentence for a comparison: how far its deviation falls, and in how many shapes clearly.
std::string area_sentence(const Comparison& comparison, const std::vector<Trend>& trends) {
  std::vector<double> falls;
  std::vector<double> correlations;
  for (const Trend& t : trends) {
    falls.push_back(t.fall);
    correlations.push_back(t.correlation);
  }
  const auto [low, high] = std::minmax_element(falls.begin(), falls.end());
  const auto clear =
      std::count_if(trends.begin(), trends.end(), [](const Trend& t) { return t.falls(); });
  return fmt::format(
      "\"{}\": from the smallest block to the largest by a factor of {} to {}, rank correlation {} "
      "at the median; a clear fall in {} of {} shapes. ",
      comparison.name, plain(*low), plain(*high), plain(median(correlations)), clear,
      trends.size());
}

Verdict verdict_of(std::size_t holds, std::size_t of) {
  if (holds == of) return Verdict::confirmed;
  return holds == 0 ? Verdict::refuted : Verdict::qualified;
}

std::string argument(const BlockSweep& s, std::size_t holds, std::size_t of) {
  return fmt::format(
      "Larger areas mean larger block_kv here, since block_q changes no bit (GO-05). Ratios of "
      "largest deviations, flash over baseline on the same bf16 inputs, against the reference in "
      "fp64: medians over {} seeds, {} queries. Where they clearly fall (rank correlation with "
      "block_kv <= {}, over blocks and seeds, and by a factor of {} or more), the claim holds: in "
      "{} of {} "
      "pairs of arithmetic and shape. ",
      s.seeds, s.rows, kStrongFall, kNoteworthy, holds, of);
}

}  // namespace

ClaimResult block_area(const ParallelFor& parallel_for) {
  const BlockSweep s = area_sweep();
  const auto measured = deviations_by_block(s, parallel_for);
  ClaimTable table{.columns = {"arithmetic", "seqlen_kv", "head_dim"}, .rows = {}};
  for (const Index block : s.blocks) table.columns.push_back(fmt::format("ratio_bc{}", block));
  table.columns.emplace_back("spearman");
  std::size_t holds = 0;
  std::string sentences;
  for (std::size_t c = 0; c < s.comparisons.size(); ++c) {
    std::vector<Trend> trends;
    for (std::size_t shape = 0; shape < s.shapes.size(); ++shape) {
      trends.push_back(trend(s, measured[shape], c));
      holds += trends.back().falls() ? 1 : 0;
      table.rows.push_back(area_row(s, c, shape, trends.back()));
    }
    sentences += area_sentence(s.comparisons[c], trends);
  }
  const std::size_t cells = table.rows.size();
  return {std::move(table), verdict_of(holds, cells), argument(s, holds, cells) + sentences};
}

}  // namespace flashbound
