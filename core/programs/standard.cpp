// Standard attention, Algorithm 0 of FlashAttention (Dao et al. 2022, arXiv 2205.14135): scores,
// softmax and product are three kernels, and each streams its operands once. That holds only when
// a whole K (or V) fits in fast memory, which the program's residency shows.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program standard_program() {
  ProgramBuilder p("standard");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef s = p.intermediate_scores("s");
  const TensorRef probabilities = p.intermediate_scores("p");
  const TensorRef o = p.o();
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);
  const Extent keys = whole(Axis::key);

  p.kernel("scores", [&] {
    const TileRef k_all = p.load(k, {keys, d});
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef scores = p.scores(p.load(q, {i, d}), k_all);
      p.logits(scores);
      p.store(s, {i, keys}, scores);
    });
  });
  p.kernel("softmax", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef row = p.load(s, {i, keys}, TileRole::score);
      const RowState state = p.row_state(i, RowStart::sink);
      p.update_rows(state, row);
      p.divide(row, state.sum);
      p.store(probabilities, {i, keys}, row);
    });
  });
  p.kernel("product", [&] {
    const TileRef v_all = p.load(v, {keys, dv});
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, dv);
      p.multiply(acc_o, p.load(probabilities, {i, keys}, TileRole::score), v_all);
      p.store(o, {i, dv}, acc_o);
    });
  });
  return p.build();
}

}  // namespace flashbound
