// Gradients of blocks of queries and of keys, in balls.
#include "core/exact/gradient_unit.hpp"
#include "core/exact/softmax.hpp"

#include <utility>

namespace flashbound {
namespace {

// dP of the visible pairs: dO V^T.
BallMatrix weight_gradients(const Head& head, const WeightBlock& block, const RowMatrix& grad_o,
                            slong precision) {
  BallMatrix result(block.rows.size(), block.keys.size());
  const BallMatrix d = balls_of(grad_o);
  for (const Block& keys : block.blocks) {
    const BallMatrix v = balls_of(head.values(keys.span));
    const Index first = block.column(keys);
    for (Index r = 0; r < result.rows(); ++r) {
      for (Index j = 0; j < v.rows(); ++j) {
        if (block.pairs.pair(r, first + j) != Pair::finite) continue;
        arb_dot(result(r, first + j), nullptr, 0, d(r, 0), 1, v(j, 0), 1, v.cols(), precision);
      }
    }
  }
  return result;
}

// value = weight (value - delta), times the slope of a softcap where there is one.
void logit_gradient(arb_ptr value, arb_srcptr weight, const Ball& delta, arb_srcptr slope,
                    slong precision) {
  arb_sub(value, value, delta.get(), precision);
  arb_mul(value, value, weight, precision);
  if (slope != nullptr) arb_mul(value, value, slope, precision);
}

arb_srcptr slope_of(const PairLogits& pairs, Index r, Index c) {
  return pairs.slopes.rows() > 0 ? pairs.slopes(r, c) : nullptr;
}

// Multiplies by the other factor of dL/dS.
void scale_all(BallMatrix& matrix, const Problem& problem, slong precision) {
  Ball scale;
  arb_set_d(scale.get(), softmax_scale(problem));
  for (Index r = 0; r < matrix.rows(); ++r) {
    for (Index c = 0; c < matrix.cols(); ++c) {
      arb_mul(matrix(r, c), matrix(r, c), scale.get(), precision);
    }
  }
}

RowFact fact_of(const WeightBlock& block, const BallMatrix& grads, Index r, slong precision) {
  const auto at = static_cast<std::size_t>(r);
  RowFact fact;
  fact.shift = block.shifts[at];
  arb_inv(fact.inverse_sum.get(), block.sums[at].get(), precision);
  if (grads.cols() == 0) return fact;
  arb_dot(fact.delta.get(), nullptr, 0, block.pairs.logits(r, 0), 1, grads(r, 0), 1, grads.cols(),
          precision);
  arb_mul(fact.delta.get(), fact.delta.get(), fact.inverse_sum.get(), precision);
  return fact;
}

// Turns dP of a row into dS without the scale, but for the row's inverse sum.
void to_score_gradients(const WeightBlock& block, Index r, const RowFact& fact, slong precision,
                        BallMatrix& grads) {
  for (Index j = 0; j < grads.cols(); ++j) {
    if (block.pairs.pair(r, j) != Pair::finite) continue;
    logit_gradient(grads(r, j), block.pairs.logits(r, j), fact.delta, slope_of(block.pairs, r, j),
                   precision);
  }
}

// dS K of a block, dS without its factors of rows and scale.
BallMatrix times_keys(const Head& head, const WeightBlock& block, const BallMatrix& grads,
                      slong precision) {
  BallMatrix result(block.rows.size(), head.problem().head_dim);
  for (const Block& keys : block.blocks) {
    const BallMatrix k = balls_of(head.keys(keys.span).transpose());
    for (Index r = 0; r < result.rows(); ++r) {
      for (Index c = 0; c < result.cols(); ++c) {
        arb_dot(result(r, c), result(r, c), 0, grads(r, block.column(keys)), 1, k(c, 0), 1,
                k.cols(), precision);
      }
    }
  }
  return result;
}

// P and dS (without the scale) of a block of queries and keys.
struct PairGradients {
  BallMatrix weights, scores;
};
PairGradients pair_gradients(PairLogits pairs, const RowFact* facts, const BallMatrix& d,
                             const BallMatrix& v, slong precision) {
  PairGradients result{std::move(pairs.logits), BallMatrix(d.rows(), v.rows())};
  const Index keys = v.rows();
  for (Index r = 0; r < d.rows(); ++r) {
    const RowFact& fact = facts[r];
    for (Index j = 0; j < keys; ++j) {
      if (pairs.pairs[static_cast<std::size_t>(r * keys + j)] != Pair::finite) continue;
      arb_ptr weight = result.weights(r, j);
      arb_sub(weight, weight, fact.shift.get(), precision);
      arb_exp(weight, weight, precision);
      arb_mul(weight, weight, fact.inverse_sum.get(), precision);
      arb_ptr score = result.scores(r, j);
      arb_dot(score, nullptr, 0, d(r, 0), 1, v(j, 0), 1, v.cols(), precision);
      logit_gradient(score, weight, fact.delta, slope_of(pairs, r, j), precision);
    }
  }
  return result;
}

// sum += pairs^T x, where x is given transposed.
void add_transposed(const BallMatrix& pairs, const BallMatrix& x, slong precision,
                    BallMatrix& sum) {
  for (Index j = 0; j < sum.rows(); ++j) {
    for (Index c = 0; c < sum.cols(); ++c) {
      arb_dot(sum(j, c), sum(j, c), 0, pairs(0, j), pairs.cols(), x(c, 0), 1, x.cols(), precision);
    }
  }
}

}  // namespace

BallMatrix query_gradients(const GradientUnit& unit, std::size_t n, const Schedule& schedule,
                           Index i, bool wants_grad, slong precision, RowFacts& facts) {
  const Head& head = unit.heads[n];
  const bool capped = unit.problem->softcap > 0;
  const WeightBlock block = weight_block(head, schedule, i, capped && wants_grad, precision);
  BallMatrix grads = weight_gradients(head, block, unit.grad_rows(n, block.rows), precision);
  const Index first = static_cast<Index>(n) * unit.at.seqlen_q + block.rows.begin;
  for (Index r = 0; r < block.rows.size(); ++r) {
    RowFact& fact = facts[static_cast<std::size_t>(first + r)];
    fact = fact_of(block, grads, r, precision);
    if (wants_grad) to_score_gradients(block, r, fact, precision, grads);
  }
  if (!wants_grad) return {};
  BallMatrix result = times_keys(head, block, grads, precision);
  for (Index r = 0; r < result.rows(); ++r) {
    const RowFact& fact = facts[static_cast<std::size_t>(first + r)];
    for (Index c = 0; c < result.cols(); ++c) {
      // Rows that see nothing have no inverse sum.
      if (arb_is_zero(result(r, c)) != 0) continue;
      arb_mul(result(r, c), result(r, c), fact.inverse_sum.get(), precision);
    }
  }
  scale_all(result, *unit.problem, precision);
  return result;
}

KeyGradients key_gradients(const GradientUnit& unit, const Schedule& schedule, Index j,
                           slong precision, const RowFacts& facts) {
  const Problem& problem = *unit.problem;
  const Interval keys = schedule.kv_rows(j);
  const Operand k = operand(unit.heads.front().keys(keys));
  const BallMatrix v = balls_of(unit.heads.front().values(keys));
  KeyGradients result{BallMatrix(keys.size(), problem.head_dim),
                      BallMatrix(keys.size(), problem.head_dim_v)};
  for (std::size_t n = 0; n < unit.heads.size(); ++n) {
    for (const Block& rows : schedule.q_blocks(j)) {
      const Operand q = operand(unit.heads[n].queries(rows.span));
      const RowMatrix grad_o = unit.grad_rows(n, rows.span);
      PairLogits pairs(rows.span.size(), keys.size(), problem.softcap > 0);
      fill_logits(unit.heads[n], rows.span, {j, keys, rows.coverage}, q, k, 0, precision, pairs);
      const RowFact* first =
          facts.data() + static_cast<Index>(n) * unit.at.seqlen_q + rows.span.begin;
      const PairGradients grads =
          pair_gradients(std::move(pairs), first, balls_of(grad_o), v, precision);
      add_transposed(grads.scores, balls_of(q.values.transpose()), precision, result.k);
      add_transposed(grads.weights, balls_of(grad_o.transpose()), precision, result.v);
    }
  }
  scale_all(result.k, problem, precision);
  return result;
}

}  // namespace flashbound
