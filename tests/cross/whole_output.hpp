// A program's output for a whole problem, every head of every sequence.
#pragma once

#include "core/numeric.hpp"
#include "core/reference.hpp"

namespace flashbound::testing {

// lse is empty where the program gives none.
inline Attention whole_output(const Program& program, const Problem& p, const Tile& tile,
                              const Inputs& inputs, const Recipe& recipe) {
  Attention result{Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}),
                   Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, 1})};
  bool has_lse = true;
  for (Index s = 0; s < sequence_count(p); ++s) {
    const Sequence at = sequence(p, s);
    for (Index head = 0; head < p.num_heads_q; ++head) {
      const NumericRun run = run_numeric(program, p, tile, inputs, at, head, recipe);
      const HeadTensor& o = *run.find("o");
      for (Index r = 0; r < o.rows; ++r) {
        for (Index c = 0; c < o.cols; ++c) {
          result.o.view()(at.batch, head, at.q_begin + r, c) = o(r, c);
        }
        const std::optional<double> lse = run.lse(r);
        has_lse = has_lse && lse.has_value();
        result.lse.view()(at.batch, head, at.q_begin + r, 0) = lse.value_or(0);
      }
    }
  }
  if (!has_lse) result.lse.elements.clear();
  return result;
}

}  // namespace flashbound::testing
