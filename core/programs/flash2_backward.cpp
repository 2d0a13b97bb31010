// The backward pass of FlashAttention-2, Algorithm 2 (Dao 2023, arXiv 2307.08691): delta (the
// paper's D) is computed once by a first kernel, and P again from lse. Otherwise the loops of
// flash1-backward; dQ begins as zeros that nobody is charged for.
// The listing as printed loads O_i in the inner loop, which nothing there reads (D has taken its
// place), and loads dQ_i twice, with the operands and again where it is updated. Here the inner
// loop loads no O, and dQ_i once. D, printed as an element of R^d, is a vector in R^N. A program is
// one query head: dK and dV are that head's share of its group's sum, as FlashAttention itself
// writes them (dk_expanded) before it adds up a group.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program flash2_backward_program() {
  ProgramBuilder p("flash2-backward");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef o = p.input("o", {Axis::query, Axis::head_dim_v});
  const TensorRef lse = p.row_input("lse");
  const TensorRef grad_o = p.input("grad_o", {Axis::query, Axis::head_dim_v});
  const TensorRef delta = p.tensor({.name = "delta",
                                    .role = TensorRole::intermediate,
                                    .width = Width::statistic,
                                    .axes = {Axis::query, Axis::one}});
  const TensorRef grad_q = p.gradient("grad_q", {Axis::query, Axis::head_dim}, Content::zero);
  const TensorRef grad_k = p.gradient("grad_k", {Axis::key, Axis::head_dim});
  const TensorRef grad_v = p.gradient("grad_v", {Axis::key, Axis::head_dim_v});
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);

  p.kernel("delta", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const TileRef do_i = p.load(grad_o, {i, dv});
      p.store(delta, {i, kColumn}, p.row_dot("delta", do_i, p.load(o, {i, dv})));
    });
  });
  p.kernel("gradients", [&] {
    p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
      const TileRef k_j = p.load(k, {j, d});
      const TileRef v_j = p.load(v, {j, dv});
      const TileRef dk_j = p.zeros("grad_k", TileRole::accumulator, j, d);
      const TileRef dv_j = p.zeros("grad_v", TileRole::accumulator, j, dv);
      p.loop("i", {RangeKind::visible_q_blocks, j.loop}, [&](LoopIndex i) {
        const TileRef q_i = p.load(q, {i, d});
        const TileRef do_i = p.load(grad_o, {i, dv});
        const TileRef lse_i = p.load(lse, {i, kColumn}, TileRole::statistic);
        const TileRef delta_i = p.load(delta, {i, kColumn}, TileRole::statistic);
        const TileRef probabilities = p.scores(q_i, k_j);
        p.logits(probabilities);
        p.exponentiate(probabilities, lse_i);
        p.multiply_left_transposed(dv_j, probabilities, do_i);
        const TileRef ds = p.zeros("grad_s", TileRole::score, i, j);
        p.multiply_transposed(ds, do_i, v_j);
        p.softmax_gradient(ds, probabilities, delta_i);
        p.logits_gradient(ds, q_i, k_j);
        const TileRef dq_i = p.load(grad_q, {i, d}, TileRole::accumulator);
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
