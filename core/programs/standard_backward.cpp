// The backward pass of standard attention, Algorithm 3 of FlashAttention (Dao et al. 2022, arXiv
// 2205.14135): P was kept by the forward pass, dP and dS are matrices in HBM, and five kernels
// stream their operands once. As in `standard`, that holds only when a whole K, V, dK or dV fits in
// fast memory, which the program's residency shows. The scale of the logits, which the listing
// leaves out, is a factor of dS. P says nothing about a softcap, so that the numeric machine
// rejects one.
// A program is one query head: dK and dV are that head's share of its group's sum.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {

Program standard_backward_program() {
  ProgramBuilder p("standard-backward");
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef probabilities = p.input("p", {Axis::query, Axis::key});
  const TensorRef grad_o = p.input("grad_o", {Axis::query, Axis::head_dim_v});
  const TensorRef grad_p = p.intermediate_scores("grad_p");
  const TensorRef grad_s = p.intermediate_scores("grad_s");
  const TensorRef grad_q = p.gradient("grad_q", {Axis::query, Axis::head_dim});
  const TensorRef grad_k = p.gradient("grad_k", {Axis::key, Axis::head_dim});
  const TensorRef grad_v = p.gradient("grad_v", {Axis::key, Axis::head_dim_v});
  const Extent d = whole(Axis::head_dim);
  const Extent dv = whole(Axis::head_dim_v);
  const Extent keys = whole(Axis::key);
  const LoopRange q_blocks{RangeKind::all_q_blocks};

  p.kernel("grad_v", [&] {
    const TileRef sum = p.zeros("grad_v", TileRole::accumulator, keys, dv);
    p.loop("i", q_blocks, [&](LoopIndex i) {
      const TileRef p_i = p.load(probabilities, {i, keys}, TileRole::score);
      p.multiply_left_transposed(sum, p_i, p.load(grad_o, {i, dv}));
    });
    p.store(grad_v, {keys, dv}, sum);
  });
  p.kernel("grad_p", [&] {
    const TileRef v_all = p.load(v, {keys, dv});
    p.loop("i", q_blocks, [&](LoopIndex i) {
      const TileRef dp = p.zeros("grad_p", TileRole::score, i, keys);
      p.multiply_transposed(dp, p.load(grad_o, {i, dv}), v_all);
      p.store(grad_p, {i, keys}, dp);
    });
  });
  p.kernel("grad_s", [&] {
    p.loop("i", q_blocks, [&](LoopIndex i) {
      const TileRef p_i = p.load(probabilities, {i, keys}, TileRole::score);
      const TileRef ds = p.load(grad_p, {i, keys}, TileRole::score);
      p.softmax_gradient(ds, p_i, p.row_dot("delta", p_i, ds));
      p.logits_gradient(ds);
      p.store(grad_s, {i, keys}, ds);
    });
  });
  p.kernel("grad_q", [&] {
    const TileRef k_all = p.load(k, {keys, d});
    p.loop("i", q_blocks, [&](LoopIndex i) {
      const TileRef sum = p.zeros("grad_q", TileRole::accumulator, i, d);
      p.multiply(sum, p.load(grad_s, {i, keys}, TileRole::score), k_all);
      p.store(grad_q, {i, d}, sum);
    });
  });
  p.kernel("grad_k", [&] {
    const TileRef sum = p.zeros("grad_k", TileRole::accumulator, keys, d);
    p.loop("i", q_blocks, [&](LoopIndex i) {
      const TileRef ds = p.load(grad_s, {i, keys}, TileRole::score);
      p.multiply_left_transposed(sum, ds, p.load(q, {i, d}));
    });
    p.store(grad_k, {keys, d}, sum);
  });
  return p.build();
}

}  // namespace flashbound
