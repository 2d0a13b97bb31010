// Attention for a fast memory smaller than d^2 (Saha and Ye 2024, arXiv 2402.07443, section on
// M < d^2): both products are blocked like matrix products of their own, and a score is spilled
// once. Tiles of block_q x block_kv are built from contraction panels of `panel`: columns of Q and
// K for the scores, keys for the output, whose columns come in blocks of block_kv.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program small_cache_program() {
  ProgramBuilder p("small-cache");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef s = p.intermediate_scores("s");
  const TensorRef o = p.o();
  const TensorRef lse = p.lse_output();

  p.kernel("attention", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const RowState row = p.row_state(i, RowStart::sink);
      p.loop("j", {RangeKind::visible_kv_blocks, i.loop}, [&](LoopIndex j) {
        const TileRef scores = p.zeros("scores", TileRole::score, i, j);
        p.loop("c", {RangeKind::head_dim_panels}, [&](LoopIndex c) {
          p.multiply_transposed(scores, p.load(q, {i, c}), p.load(k, {j, c}));
        });
        p.logits(scores);
        p.store(s, {i, j}, scores);
        p.update_rows(row, scores);
      });
      p.store(lse, {i, kColumn}, p.lse(row));
      p.loop("e", {RangeKind::head_dim_v_blocks}, [&](LoopIndex e) {
        const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, e);
        p.loop("t", {RangeKind::visible_key_panels, i.loop}, [&](LoopIndex t) {
          const TileRef scores = p.load(s, {i, t}, TileRole::score);
          p.exponentiate(scores, row.max);
          p.multiply(acc_o, scores, p.load(v, {t, e}));
        });
        p.divide(acc_o, row.sum);
        p.store(o, {i, e}, acc_o);
      });
    });
  });
  return p.build();
}

}  // namespace flashbound
