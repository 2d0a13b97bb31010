// Split-KV attention for decoding (Flash-Decoding: Dao, Haziza, Massa, Sizov, 2023): the keys are
// cut into num_splits parts; a first kernel writes a normalised partial output and its lse for
// every split, a second merges them. A split that sees nothing writes 0 and -inf, neutral in the
// merge. The sink joins in the merge, once.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program split_kv_program() {
  ProgramBuilder p("split-kv");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef part_o = p.tensor({.name = "part_o",
                                     .role = TensorRole::intermediate,
                                     .width = Width::partial,
                                     .axes = {Axis::split, Axis::query, Axis::head_dim_v}});
  const TensorRef part_lse = p.tensor({.name = "part_lse",
                                       .role = TensorRole::intermediate,
                                       .width = Width::statistic,
                                       .axes = {Axis::split, Axis::query, Axis::one}});
  const TensorRef o = p.o();
  const TensorRef lse = p.lse_output();
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);

  p.kernel("splits", [&] {
    p.loop("s", {RangeKind::splits}, [&](LoopIndex split) {
      p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
        const TileRef q_i = p.load(q, {i, d});
        const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, dv);
        const RowState row = p.row_state(i, RowStart::nothing);
        const LoopRange kv_blocks{RangeKind::visible_kv_blocks_split, i.loop, split.loop};
        p.loop("j", kv_blocks, [&](LoopIndex j) {
          const TileRef s = p.scores(q_i, p.load(k, {j, d}));
          p.logits(s);
          p.fold(row, acc_o, s, p.load(v, {j, dv}));
        });
        p.divide(acc_o, row.sum);
        p.store(part_o, {split, i, dv}, acc_o);
        p.store(part_lse, {split, i, kColumn}, p.lse(row));
      });
    });
  });
  p.kernel("merge", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, dv);
      const RowState row = p.row_state(i, RowStart::sink);
      p.loop("s", {RangeKind::splits}, [&](LoopIndex split) {
        // A partial result is one key whose logit is its lse and whose value is its output.
        const TileRef weight = p.load(part_lse, {split, i, kColumn}, TileRole::statistic);
        p.rescale(acc_o, p.update_rows(row, weight));
        p.scale_add(acc_o, weight, p.load(part_o, {split, i, dv}, TileRole::accumulator));
      });
      p.divide(acc_o, row.sum);
      p.store(o, {i, dv}, acc_o);
      p.store(lse, {i, kColumn}, p.lse(row));
    });
  });
  return p.build();
}

}  // namespace flashbound
