// FlashAttention-2, Algorithm 1 (Dao 2023, arXiv 2307.08691): queries outer, keys inner, O written
// once, lse kept. The printed listing rescales O by the inverse of exp(m_old - m_new), an erratum:
// `fold` rescales by the factor itself.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program flash2_program() {
  ProgramBuilder p("flash2");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef o = p.o();
  const TensorRef lse = p.lse_output();
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);

  p.kernel("attention", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef q_i = p.load(q, {i, d});
      const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, dv);
      const RowState row = p.row_state(i, RowStart::sink);
      p.loop("j", {RangeKind::visible_kv_blocks, i.loop}, [&](LoopIndex j) {
        const TileRef s = p.scores(q_i, p.load(k, {j, d}));
        p.logits(s);
        p.fold(row, acc_o, s, p.load(v, {j, dv}));
      });
      p.divide(acc_o, row.sum);
      p.store(o, {i, dv}, acc_o);
      p.store(lse, {i, kColumn}, p.lse(row));
    });
  });
  return p.build();
}

}  // namespace flashbound
