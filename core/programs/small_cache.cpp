// Attention for a fast memory smaller than d^2 (Saha and Ye 2024, arXiv 2402.07443, section on
// M < d^2): both products are blocked like matrix products of their own, and scores are spilled.
// Tiles of block_q x block_kv are built from contraction panels of `panel`: columns of Q and K for
// the scores, keys for the output, whose columns come in blocks of block_kv.
//
// Two programs differ in what is spilled:
//   small-cache             each score once; the last product takes its exponential again
//   small-cache-spill-both  scores, and probabilities that a softmax of its own makes of them: the
//                           source read literally, tiled products around a softmax
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {
namespace {

enum class Spilled { scores, scores_and_probabilities };

struct Tensors {
  TensorRef q, k, v, s, p, o, lse;
};

void scores_of_block(ProgramBuilder& p, const Tensors& t, LoopIndex i, RowState row) {
  p.loop("j", {RangeKind::visible_kv_blocks, i.loop}, [&](LoopIndex j) {
    const TileRef scores = p.zeros("scores", TileRole::score, i, j);
    p.loop("c", {RangeKind::head_dim_panels}, [&](LoopIndex c) {
      p.multiply_transposed(scores, p.load(t.q, {i, c}), p.load(t.k, {j, c}));
    });
    p.logits(scores);
    p.store(t.s, {i, j}, scores);
    p.update_rows(row, scores);
  });
}

void softmax_of_block(ProgramBuilder& p, const Tensors& t, LoopIndex i, RowState row) {
  p.loop("j", {RangeKind::visible_kv_blocks, i.loop}, [&](LoopIndex j) {
    const TileRef scores = p.load(t.s, {i, j}, TileRole::score);
    p.exponentiate(scores, row.max);
    p.divide(scores, row.sum);
    p.store(t.p, {i, j}, scores);
  });
}

Program small_cache(const std::string& name, Spilled spilled) {
  ProgramBuilder p(name);
  const bool both = spilled == Spilled::scores_and_probabilities;
  Tensors t{p.q(), p.k(), p.v(), p.intermediate_scores("s"), {}, {}, {}};
  if (both) t.p = p.intermediate_scores("p");
  t.o = p.o();
  t.lse = p.lse_output();

  p.kernel("attention", [&] {
    p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
      const RowState row = p.row_state(i, RowStart::sink);
      scores_of_block(p, t, i, row);
      p.store(t.lse, {i, kColumn}, p.lse(row));
      if (both) softmax_of_block(p, t, i, row);
      p.loop("e", {RangeKind::head_dim_v_blocks}, [&](LoopIndex e) {
        const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, e);
        p.loop("t", {RangeKind::visible_key_panels, i.loop}, [&](LoopIndex panel) {
          const TileRef weights = p.load(both ? t.p : t.s, {i, panel}, TileRole::score);
          if (!both) p.exponentiate(weights, row.max);
          p.multiply(acc_o, weights, p.load(t.v, {panel, e}));
        });
        if (!both) p.divide(acc_o, row.sum);
        p.store(t.o, {i, e}, acc_o);
      });
    });
  });
  return p.build();
}

}  // namespace

Program small_cache_program() { return small_cache("small-cache", Spilled::scores); }
Program small_cache_spill_both_program() {
  return small_cache("small-cache-spill-both", Spilled::scores_and_probabilities);
}

}  // namespace flashbound
