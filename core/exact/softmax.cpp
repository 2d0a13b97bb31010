#include "core/exact/softmax.hpp"

#include <utility>

namespace flashbound {
namespace {

// The largest midpoint among the row's finite logits and the sink; any shift is right, and this
// one keeps exponentials at most about 1.
Dyadic shift_of(const PairLogits& pairs, Index r, std::optional<double> sink) {
  Dyadic shift;
  arf_neg_inf(shift.get());
  if (sink) shift = Dyadic(*sink);
  for (Index c = 0; c < pairs.logits.cols(); ++c) {
    arf_srcptr middle = arb_midref(pairs.logits(r, c));
    if (pairs.pair(r, c) == Pair::finite && arf_cmp(middle, shift.get()) > 0) {
      arf_set(shift.get(), middle);
    }
  }
  return shift;
}

void exponential(arb_ptr number, const Dyadic& shift, slong precision) {
  arb_sub_arf(number, number, shift.get(), precision);
  arb_exp(number, number, precision);
}

void exponentiate(WeightBlock& block, Index r, std::optional<double> sink, slong precision) {
  const Dyadic shift = shift_of(block.pairs, r, sink);
  Ball sum;
  if (sink) {
    arb_set_d(sum.get(), *sink);
    exponential(sum.get(), shift, precision);
  }
  for (Index c = 0; c < block.keys.size(); ++c) {
    const Pair pair = block.pairs.pair(r, c);
    if (pair == Pair::undefined) block.undefined[static_cast<std::size_t>(r)] = true;
    if (pair != Pair::finite) continue;
    arb_ptr weight = block.pairs.logits(r, c);
    exponential(weight, shift, precision);
    arb_add(sum.get(), sum.get(), weight, precision);
  }
  arb_set_arf(block.shifts[static_cast<std::size_t>(r)].get(), shift.get());
  block.sums[static_cast<std::size_t>(r)] = std::move(sum);
}

}  // namespace

WeightBlock weight_block(const Head& head, const Schedule& schedule, Index i, bool with_slopes,
                         slong precision) {
  std::vector<Block> blocks;
  for (const Block keys : schedule.kv_blocks(i)) blocks.push_back(keys);
  Interval keys;
  if (!blocks.empty()) keys = {blocks.front().span.begin, blocks.back().span.end};
  const Interval rows = schedule.q_rows(i);
  const auto count = static_cast<std::size_t>(rows.size());
  WeightBlock block{rows,
                    keys,
                    std::move(blocks),
                    PairLogits(rows.size(), keys.size(), with_slopes),
                    std::vector<Ball>(count),
                    std::vector<Ball>(count),
                    std::vector<bool>(count, false)};
  const Operand q = operand(head.queries(rows));
  for (const Block& part : block.blocks) {
    const Operand k = operand(head.keys(part.span));
    fill_logits(head, rows, part, q, k, block.column(part), precision, block.pairs);
  }
  for (Index r = 0; r < rows.size(); ++r) exponentiate(block, r, head.sink(), precision);
  return block;
}

}  // namespace flashbound
