// Attention for a fast memory smaller than d^2, as three passes over blocks (Saha and Ye 2024,
// arXiv 2402.07443, read literally: tiled products around a softmax): scores and probabilities are
// both spilled, where small-cache spills the scores alone. Blocks, panels and loops are those of
// small-cache.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program small_cache_spill_both_program() {
  ProgramBuilder p("small-cache-spill-both");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef s = p.intermediate_scores("s");
  const TensorRef probabilities = p.intermediate_scores("p");
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
      p.loop("j", {RangeKind::visible_kv_blocks, i.loop}, [&](LoopIndex j) {
        const TileRef scores = p.load(s, {i, j}, TileRole::score);
        p.exponentiate(scores, row.max);
        p.divide(scores, row.sum);
        p.store(probabilities, {i, j}, scores);
      });
      p.loop("e", {RangeKind::head_dim_v_blocks}, [&](LoopIndex e) {
        const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, e);
        p.loop("t", {RangeKind::visible_key_panels, i.loop}, [&](LoopIndex t) {
          const TileRef p_it = p.load(probabilities, {i, t}, TileRole::score);
          p.multiply(acc_o, p_it, p.load(v, {t, e}));
        });
        p.store(o, {i, e}, acc_o);
      });
    });
  });
  return p.build();
}

}  // namespace flashbound
