#include "experiments/numerics/emulated_head.hpp"

#include "core/programs.hpp"
#include "experiments/random_inputs.hpp"

#include <cmath>
#include <string>

namespace flashbound {

EmulatedHead head_with_scores_of(const Shape& shape, const Tile& tile, double score_std,
                                 std::uint64_t seed) {
  EmulatedHead head;
  head.problem.seqlen_q = shape.seqlen_q;
  head.problem.seqlen_kv = shape.seqlen_kv;
  head.problem.head_dim = shape.head_dim;
  head.problem.head_dim_v = shape.head_dim_v;
  head.problem.softmax_scale = score_std / std::sqrt(static_cast<double>(shape.head_dim));
  head.tile = tile;
  head.inputs = normal_inputs(head.problem, seed);
  const TensorView<double> q = head.inputs.q.view();
  for (Index row = 0; row < shape.seqlen_q; ++row) {
    double squares = 0;
    for (Index c = 0; c < shape.head_dim; ++c) squares += q(0, 0, row, c) * q(0, 0, row, c);
    const double scale = std::sqrt(static_cast<double>(shape.head_dim) / squares);
    for (Index c = 0; c < shape.head_dim; ++c) q(0, 0, row, c) *= scale;
  }
  return head;
}

NumericRun run_flash2(const EmulatedHead& head, const Recipe& recipe) {
  return run_numeric(flash2_program(), head.problem, head.tile, head.inputs.view(),
                     sequence(head.problem, 0), 0, recipe);
}

Recipe sequential_recipe(NumberFormat format) {
  return uniform_recipe("sequential-" + std::string(name(format)), float_format(format));
}

}  // namespace flashbound
