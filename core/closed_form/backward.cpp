// Backward passes: standard-backward, which looks at no mask, and the two that recompute P with
// keys outer. K and V are read once, dK and dV written once; everything about a block of queries
// travels at every visit.
#include "core/closed_form/head_form.hpp"

namespace flashbound {

HeadForm standard_backward_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const Elements matrix = n_q.value() * n_kv;  // N^2: P, masked or not

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * n_q},
      {.tensor = "k", .read = d * n_kv},
      {.tensor = "v", .read = dv * n_kv},
      {.tensor = "p", .read = 2 * matrix},
      {.tensor = "grad_o", .read = 2 * (dv * n_q)},
      {.tensor = "grad_p", .read = matrix, .written = matrix},
      {.tensor = "grad_s", .read = 2 * matrix, .written = matrix},
      {.tensor = "grad_q", .written = d * n_q},
      {.tensor = "grad_k", .written = d * n_kv},
      {.tensor = "grad_v", .written = dv * n_kv},
  };
  // A whole V, dV, K or dK beside a block of rows and their scores; for dS two blocks of scores and
  // delta.
  const Int128 keys = n_kv.value();
  form.sram_peak = Elements(std::max({keys * dv + br * (keys + dv),   // dV, and dP
                                      br * (2 * keys + 1),            // dS
                                      keys * d + br * (keys + d)}));  // dQ, and dK
  form.flops = product_flops(2 * (d + dv), matrix);
  return form;
}

namespace {

// What the two with keys outer share. During a visit they hold K, V, dK, dV of the block of keys, P
// and dS, and `row_words` for each query; K, V, dK and dV even when nobody sees them.
void add_keys_outer(HeadForm& form, const Letters& letters, const VisibleBlocks& visible,
                    Int128 row_words) {
  const Int128 per_key = 2 * (letters.d + letters.dv);
  const Elements visits = peak_over_q_blocks(visible, [&](const QBlockClass& block) {
    const Int128 r = block.rows;
    const Int128 c = block.kv_block_rows;
    return c > 0 ? c * per_key + r * row_words + 2 * r * c : 0;
  });
  form.sram_peak = std::max(visits, Elements(letters.bc * per_key));
  // Scores again, then dV, dP, dQ and dK.
  form.flops = product_flops(3 * letters.d + 2 * letters.dv, visible.scores);
  form.exponentials = events(visible.scores);
}

}  // namespace

HeadForm flash1_backward_form(const Schedule& schedule) {
  const Letters letters(schedule);
  const auto& [n_q, n_kv, d, dv, br, bc, tr, tc] = letters;
  const VisibleBlocks visible = visible_blocks(schedule);
  const Elements visits = visible.row_visits;

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * visits},
      {.tensor = "k", .read = d * n_kv},
      {.tensor = "v", .read = dv * n_kv},
      {.tensor = "o", .read = dv * visits},
      {.tensor = "row_max", .width = Width::statistic, .read = visits},
      {.tensor = "row_sum", .width = Width::statistic, .read = visits},
      {.tensor = "grad_o", .read = dv * visits},
      {.tensor = "grad_q", .read = d * visits, .written = d * visits},
      {.tensor = "grad_k", .written = d * n_kv},
      {.tensor = "grad_v", .written = dv * n_kv},
  };
  // q, dQ, o, dO, row_max, row_sum and delta.
  add_keys_outer(form, letters, visible, 2 * d + 2 * dv + 3);
  return form;
}

HeadForm flash2_backward_form(const Schedule& schedule) {
  const Letters letters(schedule);
  const auto& [n_q, n_kv, d, dv, br, bc, tr, tc] = letters;
  const VisibleBlocks visible = visible_blocks(schedule);
  const Elements visits = visible.row_visits;

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * visits},
      {.tensor = "k", .read = d * n_kv},
      {.tensor = "v", .read = dv * n_kv},
      {.tensor = "o", .read = dv * n_q},
      {.tensor = "lse", .width = Width::statistic, .read = visits},
      {.tensor = "grad_o", .read = dv * n_q + dv * visits},
      {.tensor = "delta", .width = Width::statistic, .read = visits, .written = n_q},
      {.tensor = "grad_q", .read = d * visits, .written = d * visits},
      {.tensor = "grad_k", .written = d * n_kv},
      {.tensor = "grad_v", .written = dv * n_kv},
  };
  // q, dQ, dO, lse and delta; the first kernel holds o, dO and delta.
  add_keys_outer(form, letters, visible, 2 * d + dv + 2);
  form.sram_peak = std::max(form.sram_peak, Elements(br * (2 * dv + 1)));
  return form;
}

}  // namespace flashbound
