// The backward pass of FlashAttention, Algorithm 4 (Dao et al. 2022, arXiv 2205.14135), without
// dropout: keys outer, queries inner. P is computed again from row_max and row_sum; dK and dV of a
// block of keys gather in fast memory, and dQ travels to HBM and back at every step, beginning as
// zeros that nobody is charged for, like O in flash1.
// A program is one query head: dK and dV are that head's share of its group's sum.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program flash1_backward_program() {
  ProgramBuilder p("flash1-backward");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef o = p.input("o", {Axis::query, Axis::head_dim_v});
  const TensorRef row_max = p.row_input("row_max");
  const TensorRef row_sum = p.row_input("row_sum");
  const TensorRef grad_o = p.input("grad_o", {Axis::query, Axis::head_dim_v});
  const TensorRef grad_q = p.gradient("grad_q", {Axis::query, Axis::head_dim}, Content::zero);
  const TensorRef grad_k = p.gradient("grad_k", {Axis::key, Axis::head_dim});
  const TensorRef grad_v = p.gradient("grad_v", {Axis::key, Axis::head_dim_v});
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);

  p.kernel("gradients", [&] {
    p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
      const TileRef k_j = p.load(k, {j, d});
      const TileRef v_j = p.load(v, {j, dv});
      const TileRef dk_j = p.zeros("grad_k", TileRole::accumulator, j, d);
      const TileRef dv_j = p.zeros("grad_v", TileRole::accumulator, j, dv);
      p.loop("i", {RangeKind::visible_q_blocks, j.loop}, [&](LoopIndex i) {
        const TileRef q_i = p.load(q, {i, d});
        const TileRef o_i = p.load(o, {i, dv});
        const TileRef do_i = p.load(grad_o, {i, dv});
        const TileRef dq_i = p.load(grad_q, {i, d}, TileRole::accumulator);
        const TileRef m_i = p.load(row_max, {i, kColumn}, TileRole::statistic);
        const TileRef l_i = p.load(row_sum, {i, kColumn}, TileRole::statistic);
        const TileRef probabilities = p.scores(q_i, k_j);
        p.logits(probabilities);
        p.exponentiate(probabilities, m_i);
        p.divide(probabilities, l_i);
        p.multiply_left_transposed(dv_j, probabilities, do_i);
        const TileRef ds = p.zeros("grad_s", TileRole::score, i, j);
        p.multiply_transposed(ds, do_i, v_j);
        p.softmax_gradient(ds, probabilities, p.row_dot("delta", do_i, o_i));
        p.logits_gradient(ds, q_i, k_j);
        p.multiply(dq_i, ds, k_j);
        p.store(grad_q, {i, d}, dq_i);
        p.multiply_left_transposed(dk_j, ds, q_i);
      });
      p.store(grad_k, {j, d}, dk_j);
      p.store(grad_v, {j, dv}, dv_j);
    });
  });
  return p.build();
}

}  // namespace flashbound
