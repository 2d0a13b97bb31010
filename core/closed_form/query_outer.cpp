// Queries outer: flash2, split-kv and rabe-staats. K and V are read once for every block of queries
// that sees them.
#include "core/closed_form/head_form.hpp"

namespace flashbound {
namespace {

// Most that flash2 holds: q, acc_o, row_max, row_sum, and a third statistic, which is the
// rescale_factor during a visit and lse after the last one; during a visit also K, V and scores.
Elements flash2_peak(const VisibleBlocks& visible, Int128 d, Int128 dv) {
  return peak_over_q_blocks(visible, [&](const QBlockClass& block) {
    const Int128 r = block.rows;
    const Int128 c = block.kv_block_rows;
    return r * (d + dv + 3) + c * (d + dv) + r * c;
  });
}

}  // namespace

HeadForm flash2_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const VisibleBlocks visible = visible_blocks(schedule);

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * n_q},
      {.tensor = "k", .read = d * visible.key_visits},
      {.tensor = "v", .read = dv * visible.key_visits},
      {.tensor = "o", .written = dv * n_q},
      {.tensor = "lse", .width = Width::statistic, .written = n_q},
  };
  form.sram_peak = flash2_peak(visible, d, dv);
  form.flops = product_flops(d + dv, visible.scores);
  form.exponentials = events(visible.scores + visible.row_visits);
  form.rescales_at_most = events(visible.row_visits);
  return form;
}

HeadForm split_kv_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const VisibleBlocks visible = visible_blocks(schedule);
  // Splits share out the blocks of keys, so that K and V are read as by flash2; everything about
  // queries happens in every split, even in one without keys.
  const Int128 splits = schedule.tile.num_splits;
  const Elements parts = splits * n_q;

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * parts},
      {.tensor = "k", .read = d * visible.key_visits},
      {.tensor = "v", .read = dv * visible.key_visits},
      {.tensor = "part_o", .width = Width::partial, .read = dv * parts, .written = dv * parts},
      {.tensor = "part_lse", .width = Width::statistic, .read = parts, .written = parts},
      {.tensor = "o", .written = dv * n_q},
      {.tensor = "lse", .width = Width::statistic, .written = n_q},
  };
  // The merge holds acc_o and a partial one, row_max, row_sum, the partial lse, rescale_factor.
  form.sram_peak = std::max(flash2_peak(visible, d, dv), Elements(br * (2 * dv + 4)));
  form.flops = product_flops(d + dv, visible.scores);
  // The merge folds each partial result as if it were one key.
  form.exponentials = events(visible.scores + visible.row_visits + 2 * parts);
  form.rescales_at_most = events(visible.row_visits + parts);
  return form;
}

HeadForm rabe_staats_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const VisibleBlocks visible = visible_blocks(schedule);

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * n_q},
      {.tensor = "k", .read = d * visible.key_visits},
      {.tensor = "v", .read = dv * visible.key_visits},
      {.tensor = "o", .written = dv * n_q},
  };
  // A summary is a partial o with its row_max and row_sum. All summaries of a block of queries are
  // resident while its keys pass, and when they are merged into one more.
  form.sram_peak = peak_over_q_blocks(visible, [d = d, dv = dv](const QBlockClass& block) {
    const Int128 r = block.rows;
    const Int128 c = block.kv_block_rows;
    const Int128 n = block.kv_blocks_max;
    const Int128 summary = r * (dv + 2);
    const Int128 summarise = n * summary + r * d + c * (d + dv) + r * c;
    const Int128 merge = n * summary + summary + (n > 0 ? r : 0);  // with a rescale_factor
    return std::max(summarise, merge);
  });
  form.flops = product_flops(d + dv, visible.scores);
  // Each summary is taken without a factor, and merged with two: of the old and the new maximum.
  form.exponentials = events(visible.scores + 2 * visible.row_visits);
  form.rescales_at_most = events(visible.row_visits);
  return form;
}

}  // namespace flashbound
