// Attention that materialises its matrices: standard and standard-tiled. Neither looks at the
// mask, so that both are polynomials in the sizes.
#include "core/closed_form/head_form.hpp"

namespace flashbound {

HeadForm standard_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const Elements matrix = n_q.value() * n_kv;  // N^2: scores, masked or not

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * n_q},
      {.tensor = "k", .read = d * n_kv},
      {.tensor = "v", .read = dv * n_kv},
      {.tensor = "s", .read = matrix, .written = matrix},
      {.tensor = "p", .read = matrix, .written = matrix},
      {.tensor = "o", .written = dv * n_q},
  };
  // A whole K or V beside a block of queries and its rows of scores; in the softmax, those rows
  // with row_max, row_sum and rescale_factor.
  const Int128 keys = n_kv.value();
  form.sram_peak = Elements(std::max({keys * d + br * (d + keys),       // scores
                                      br * (keys + 3),                  // softmax
                                      keys * dv + br * (dv + keys)}));  // product
  form.flops = product_flops(d + dv, matrix);
  form.exponentials = events(matrix + n_q);
  form.rescales_at_most = events(n_q);
  return form;
}

HeadForm standard_tiled_form(const Schedule& schedule) {
  const auto [n_q, n_kv, d, dv, br, bc, tr, tc] = Letters(schedule);
  const Elements matrix = n_q.value() * n_kv;  // N^2: scores, masked or not

  HeadForm form;
  form.tensors = {
      {.tensor = "q", .read = d * n_q},
      {.tensor = "k", .read = tr * (d * n_kv)},
      {.tensor = "v", .read = tr * (dv * n_kv)},
      {.tensor = "s", .read = 2 * matrix, .written = matrix},
      {.tensor = "p", .read = matrix, .written = matrix},
      {.tensor = "o", .written = dv * n_q},
  };
  if (tr > 0) {
    // One block of queries, one of keys, their scores; without keys, what the queries have alone.
    const Int128 softmax = br * 2 + (tc > 0 ? br * bc + br : 0);
    form.sram_peak =
        Elements(std::max({br * d + bc * d + br * bc, softmax, br * dv + bc * dv + br * bc}));
  }
  form.flops = product_flops(d + dv, matrix);
  // The first pass over the scores finds their sums, the second takes the exponentials again.
  form.exponentials = events(2 * matrix + tc * n_q);
  form.rescales_at_most = events(tc * n_q);
  return form;
}

}  // namespace flashbound
