#include "experiments/numerics/golden_blocks.hpp"

namespace flashbound {
namespace {

constexpr Index kBlockQ = 64;  // changes no bit: GO-05

BlockDeviations deviations_of(const BlockSweep& sweep, const HeadCase& head) {
  const Inputs inputs = head.inputs.view();
  BlockDeviations result;
  for (const Comparison& comparison : sweep.comparisons) {
    result.baseline.push_back(deviation(
        numeric_output("standard", comparison.baseline_recipe, head.problem, {kBlockQ, 64}, inputs),
        head.exact));
    std::vector<Deviation> by_block;
    for (const Index block : sweep.blocks) {
      by_block.push_back(deviation(numeric_output(comparison.flash, comparison.flash_recipe,
                                                  head.problem, {kBlockQ, block}, inputs),
                                   head.exact));
    }
    result.flash.push_back(std::move(by_block));
  }
  return result;
}

}  // namespace

std::vector<std::vector<BlockDeviations>> deviations_by_block(const BlockSweep& sweep,
                                                              const ParallelFor& parallel_for) {
  const auto seeds = static_cast<std::size_t>(sweep.seeds);
  std::vector<std::vector<BlockDeviations>> result(sweep.shapes.size(),
                                                   std::vector<BlockDeviations>(seeds));
  const FloatFormat bf16 = float_format(NumberFormat::bf16);
  parallel_for(static_cast<Index>(sweep.shapes.size() * seeds), [&](Index part) {
    // The longest first, so that no thread is left with one of them in the end.
    const std::size_t shape = sweep.shapes.size() - 1 - static_cast<std::size_t>(part) / seeds;
    const std::size_t seed = static_cast<std::size_t>(part) % seeds;
    const HeadCase head = head_case("normal", sweep.rows, sweep.shapes[shape].first,
                                    sweep.shapes[shape].second, bf16, seed + 1);
    result[shape][seed] = deviations_of(sweep, head);
  });
  return result;
}

double median_ratio(const std::vector<BlockDeviations>& seeds, const RatioOf& of) {
  std::vector<double> ratios;
  ratios.reserve(seeds.size());
  for (const BlockDeviations& seed : seeds) {
    ratios.push_back(seed.flash[of.flash][of.block].*of.measure /
                     seed.baseline[of.baseline].*of.measure);
  }
  return median(ratios);
}

}  // namespace flashbound
