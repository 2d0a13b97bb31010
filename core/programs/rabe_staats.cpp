// Rabe and Staats 2021 (arXiv 2112.05682), section 4: for each block of queries, every block of
// keys is summarised on its own (maximum, sum, unnormalised output); the summaries are kept and
// merged at the end. No lse is written. With block_kv = sqrt(N) and block_q fixed, fast memory
// holds O(sqrt N) words.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program rabe_staats_program() {
  ProgramBuilder p("rabe-staats");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef o = p.o();
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);

  p.kernel("attention", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef q_i = p.load(q, {i, d});
      const LoopRange kv_blocks{RangeKind::visible_kv_blocks, i.loop};
      const TileRef part_o = p.allocate({"part_o", TileRole::accumulator, i, dv, true, kv_blocks});
      const RowState part = p.row_state_copies(i, kv_blocks);
      p.loop("j", kv_blocks, [&](LoopIndex j) {
        const TileRef s = p.scores(q_i, p.load(k, {j, d}));
        p.logits(s);
        p.row_max_first(part.max.at(j), s);
        p.exponentiate(s, part.max.at(j));
        p.row_sum_update(part.sum.at(j), s);
        p.multiply(part_o.at(j), s, p.load(v, {j, dv}));
      });
      p.release(q_i);
      const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, dv);
      const RowState row = p.row_state(i, RowStart::sink);
      p.loop("j", kv_blocks, [&](LoopIndex j) {
        const TileRef factor = p.row_max_update(row.max, part.max.at(j));
        p.exponentiate(part.max.at(j), row.max);
        p.rescale(row.sum, factor);
        p.scale_add(row.sum, part.max.at(j), part.sum.at(j));
        p.rescale(acc_o, factor);
        p.scale_add(acc_o, part.max.at(j), part_o.at(j));
      });
      p.divide(acc_o, row.sum);
      p.store(o, {i, dv}, acc_o);
    });
  });
  return p.build();
}

}  // namespace flashbound
