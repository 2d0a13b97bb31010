// Standard attention with blocked products: three kernels like Algorithm 0 of FlashAttention, but
// no operand has to fit whole. The softmax reads a row of scores twice: once for its maximum and
// sum (Milakov and Gimelshein 2018, arXiv 1805.02867, Algorithm 3), once for its exponentials.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program standard_tiled_program() {
  ProgramBuilder p("standard-tiled");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef s = p.intermediate_scores("s");
  const TensorRef probabilities = p.intermediate_scores("p");
  const TensorRef o = p.o();
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);

  p.kernel("scores", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef q_i = p.load(q, {i, d});
      p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
        const TileRef scores = p.scores(q_i, p.load(k, {j, d}));
        p.logits(scores);
        p.store(s, {i, j}, scores);
      });
    });
  });
  p.kernel("softmax", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const RowState row = p.row_state(i, RowStart::sink);
      p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
        p.update_rows(row, p.load(s, {i, j}, TileRole::score));
      });
      p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
        const TileRef scores = p.load(s, {i, j}, TileRole::score);
        p.exponentiate(scores, row.max);
        p.divide(scores, row.sum);
        p.store(probabilities, {i, j}, scores);
      });
    });
  });
  p.kernel("product", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, dv);
      p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
        const TileRef p_ij = p.load(probabilities, {i, j}, TileRole::score);
        p.multiply(acc_o, p_ij, p.load(v, {j, dv}));
      });
      p.store(o, {i, dv}, acc_o);
    });
  });
  return p.build();
}

}  // namespace flashbound
