// Keys outer: the three variants of flash1. K and V are read once; everything about a block of
// queries travels at every visit.
#include "core/closed_form/head_form.hpp"

namespace flashbound {
namespace {

// Most that Algorithm 1 holds: K and V of a block, even when nobody sees them; during a visit also
// q, o, row_max, row_sum, rescale_factor and the scores.
Elements flash1_peak(const VisibleBlocks& visible, const Letters& letters) {
  const Int128 d = letters.d;
  const Int128 dv = letters.dv;
  const Elements visits = peak_over_q_blocks(visible, [&](const QBlockClass& block) {
    const Int128 r = block.rows;
    const Int128 c = block.kv_block_rows;
    return c > 0 ? r * (d + dv + 3) + c * (d + dv) + r * c : 0;
  });
  return std::max(visits, Elements(letters.bc * (d + dv)));
}

}  // namespace

HeadForm flash1_form(const Schedule& schedule) {
  const Letters letters(schedule);
  const auto& [n_q, n_kv, d, dv, br, bc, tr, tc] = letters;
  const VisibleBlocks visible = visible_blocks(schedule);
  const Elements visits = visible.row_visits;

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * visits},
      {.tensor = "k", .read = d * n_kv},
      {.tensor = "v", .read = dv * n_kv},
      {.tensor = "o", .read = dv * visits, .written = dv * visits},
      {.tensor = "row_max", .width = Width::statistic, .read = visits, .written = visits},
      {.tensor = "row_sum", .width = Width::statistic, .read = visits, .written = visits},
  };
  form.sram_peak = flash1_peak(visible, letters);
  form.flops = product_flops(d + dv, visible.scores);
  form.exponentials = events(visible.scores + visits);
  form.rescales_at_most = events(visits);
  return form;
}

namespace {

// Adds `read` and `written` columns of row statistics, and as many rows of o.
void add_rows(HeadForm& form, Int128 dv, Elements read, Elements written) {
  for (TensorForm& tensor : form.tensors) {
    const bool statistic = tensor.tensor == "row_max" || tensor.tensor == "row_sum";
    if (!statistic && tensor.tensor != "o") continue;
    const Int128 cols = statistic ? 1 : dv;
    tensor.read += cols * read;
    tensor.written += cols * written;
  }
}

}  // namespace

HeadForm flash1_charged_start_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  HeadForm form = flash1_form(schedule);
  add_rows(form, dv, Elements(), n_q);  // line 2: + Nd + 2N written
  form.sram_peak = std::max(form.sram_peak, Elements(br * (dv + 2)));
  return form;
}

HeadForm flash1_skip_first_read_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const VisibleBlocks visible = visible_blocks(schedule);
  HeadForm form = flash1_form(schedule);
  // First visits read no o: - Nd - 2N. Queries without a visit are written once at the end.
  add_rows(form, dv, Elements() - visible.rows_seeing, n_q - visible.rows_seeing);
  const Elements start = peak_over_q_blocks(visible, [dv = dv](const QBlockClass& block) {
    return block.some_see_nothing ? block.rows * (dv + 2) : 0;
  });
  form.sram_peak = std::max(form.sram_peak, start);
  return form;
}

}  // namespace flashbound
