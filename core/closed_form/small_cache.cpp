// For M < d^2: products in blocks of their own, scores spilled.
#include "core/closed_form/head_form.hpp"

namespace flashbound {

HeadForm small_cache_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const VisibleBlocks visible = visible_blocks(schedule);
  // The second product walks the keys in panels: at the edge of a mask it visits fewer of them.
  Tile panel_tile = schedule.tile;
  panel_tile.block_kv = schedule.tile.panel;
  const VisibleBlocks panels = visible_blocks({schedule.shape, schedule.mask, panel_tile});
  const Int128 te = Partition{schedule.shape.head_dim_v, schedule.tile.block_kv}.count();

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * visible.row_visits},
      {.tensor = "k", .read = d * visible.key_visits},
      {.tensor = "v", .read = dv * panels.key_visits},
      {.tensor = "s", .read = te * panels.scores, .written = visible.scores},
      {.tensor = "o", .written = dv * n_q},
      {.tensor = "lse", .width = Width::statistic, .written = n_q},
  };
  const Int128 panel_cols = std::min<Int128>(schedule.tile.panel, d);
  const Int128 o_cols = std::min<Int128>(schedule.tile.block_kv, dv);
  form.sram_peak = Elements();
  for (std::size_t at = 0; at < visible.classes.size(); ++at) {
    const Int128 r = visible.classes[at].rows;
    if (r == 0) continue;
    const Int128 c = visible.classes[at].kv_block_rows;
    const Int128 t = panels.classes[at].kv_block_rows;
    // row_max, row_sum and a block of scores with panels of Q and K; these outweigh the
    // rescale_factor that comes after them.
    const Int128 scores = c > 0 ? r * 2 + r * c + (r + c) * panel_cols : 0;
    // row_max, row_sum, lse, a block of o, and panels of scores and V.
    const Int128 output = r * 3 + r * o_cols + t * (r + o_cols);
    form.sram_peak = std::max(form.sram_peak, Elements(std::max(scores, output)));
  }
  form.flops = product_flops(d, visible.scores) + product_flops(dv, panels.scores);
  // Once for row_sum, then again for every block of columns of o.
  form.exponentials = events(visible.scores + visible.row_visits + te * panels.scores);
  form.rescales_at_most = events(visible.row_visits);
  return form;
}

// The softmax in a pass of its own moves the scores once more and the probabilities once; the last
// product then reads probabilities where small-cache reads scores. It holds a block of scores and
// three statistics, which the panels of the first product outweigh.
HeadForm small_cache_spill_both_form(const Schedule& schedule) {
  HeadForm form = small_cache_form(schedule);
  TensorForm& s = form.tensors[3];
  const TensorForm p{.tensor = "p", .read = s.read, .written = s.written};
  // Exponentials for row_sum and for the probabilities, no longer as scores are read.
  form.exponentials += events(s.written) - events(s.read);
  s.read = s.written;
  form.tensors.insert(form.tensors.begin() + 4, p);
  return form;
}

}  // namespace flashbound
