// FlashAttention, Algorithm 1 (Dao et al. 2022, arXiv 2205.14135): keys outer, queries inner; O,
// row_max and row_sum travel to HBM and back at every step, and O is kept normalised.
//
// Three programs differ in how O, row_max and row_sum begin (line 2 of the listing):
//   flash1                  they hold their start values; nobody is charged for writing them. This
//                           is what the paper's Theorem 2 counts.
//   flash1-charged-start    a first kernel writes them, as line 2 says.
//   flash1-skip-first-read  the first visit of a query block reads nothing and starts in fast
//                           memory; query blocks that see no key are written once at the end.
// K_j and V_j are loaded for every j, as printed, even where no query sees them.
#include "core/program_builder.hpp"
#include "core/programs.hpp"

namespace flashbound {
namespace {

enum class Start { uncharged, charged, in_fast_memory };

struct Tensors {
  TensorRef q, k, v, o, row_max, row_sum;
};

Tensors declare(ProgramBuilder& p, Start start) {
  const bool uncharged = start == Start::uncharged;
  const auto statistic = [&](const char* name, Content content) {
    return p.tensor({name,
                     TensorRole::output,
                     Width::statistic,
                     uncharged ? content : Content::undefined,
                     {Axis::query, Axis::one}});
  };
  const TensorRef q = p.q();
  const TensorRef k = p.k();
  const TensorRef v = p.v();
  const TensorRef o = p.tensor({"o",
                                TensorRole::output,
                                Width::data,
                                uncharged ? Content::zero : Content::undefined,
                                {Axis::query, Axis::head_dim_v}});
  return {
      q, k, v, o, statistic("row_max", Content::sink_max), statistic("row_sum", Content::sink_sum)};
}

void store_rows(ProgramBuilder& p, const Tensors& t, Extent i, TileRef acc_o, RowState row) {
  p.store(t.o, {i, whole(Axis::head_dim_v)}, acc_o);
  p.store(t.row_max, {i, kColumn}, row.max);
  p.store(t.row_sum, {i, kColumn}, row.sum);
}

// Writes the start values of a query block that no earlier step has written.
void store_start(ProgramBuilder& p, const Tensors& t, LoopIndex i) {
  const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, whole(Axis::head_dim_v));
  store_rows(p, t, i, acc_o, p.row_state(i, RowStart::sink));
}

// Lines 9 to 13: one block of scores folded into O_i, which is divided again at every step.
void step(ProgramBuilder& p, const Tensors& t, LoopIndex i, TileRef k_j, TileRef v_j, TileRef acc_o,
          RowState row) {
  const TileRef s = p.scores(p.load(t.q, {i, whole(Axis::head_dim)}), k_j);
  p.logits(s);
  p.fold(row, acc_o, s, v_j);
  p.divide(acc_o, row.sum);
  store_rows(p, t, i, acc_o, row);
}

void resume_step(ProgramBuilder& p, const Tensors& t, LoopIndex i, TileRef k_j, TileRef v_j) {
  const TileRef acc_o = p.load(t.o, {i, whole(Axis::head_dim_v)}, TileRole::accumulator);
  const RowState row{p.load(t.row_max, {i, kColumn}, TileRole::statistic),
                     p.load(t.row_sum, {i, kColumn}, TileRole::statistic)};
  p.rescale(acc_o, row.sum);  // O was stored normalised
  step(p, t, i, k_j, v_j, acc_o, row);
}

void first_step(ProgramBuilder& p, const Tensors& t, LoopIndex i, TileRef k_j, TileRef v_j) {
  const TileRef acc_o = p.zeros("acc_o", TileRole::accumulator, i, whole(Axis::head_dim_v));
  step(p, t, i, k_j, v_j, acc_o, p.row_state(i, RowStart::sink));
}

Program flash1(const char* name, Start start) {
  ProgramBuilder p(name);
  const Tensors t = declare(p, start);
  if (start == Start::charged) {
    p.kernel("start", [&] {
      p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) { store_start(p, t, i); });
    });
  }
  p.kernel("attention", [&] {
    p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
      const TileRef k_j = p.load(t.k, {j, whole(Axis::head_dim)});
      const TileRef v_j = p.load(t.v, {j, whole(Axis::head_dim_v)});
      if (start == Start::in_fast_memory) {
        p.loop("i", {RangeKind::starting_q_blocks, j.loop},
               [&](LoopIndex i) { first_step(p, t, i, k_j, v_j); });
        p.loop("i", {RangeKind::continuing_q_blocks, j.loop},
               [&](LoopIndex i) { resume_step(p, t, i, k_j, v_j); });
      } else {
        p.loop("i", {RangeKind::visible_q_blocks, j.loop},
               [&](LoopIndex i) { resume_step(p, t, i, k_j, v_j); });
      }
    });
    if (start == Start::in_fast_memory) {
      p.loop("i", {RangeKind::q_blocks_without_keys}, [&](LoopIndex i) { store_start(p, t, i); });
    }
  });
  return p.build();
}

}  // namespace

Program flash1_program() { return flash1("flash1", Start::uncharged); }
Program flash1_charged_start_program() { return flash1("flash1-charged-start", Start::charged); }
Program flash1_skip_first_read_program() {
  return flash1("flash1-skip-first-read", Start::in_fast_memory);
}

}  // namespace flashbound
