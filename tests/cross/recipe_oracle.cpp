#include "tests/cross/recipe_oracle.hpp"

#include "core/exponential.hpp"
#include "tests/core/exact_number.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <optional>

namespace flashbound::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Vector = std::vector<double>;

// Operations rounded once in the recipe's direction.
struct Operations {
  Rounding rounding;

  double round(const FloatFormat& f, double x) const { return round_to(f, rounding, x); }
  // `plain` is the operation in fp64: right where it is not finite, and in the sign of zeros.
  double once(const FloatFormat& f, double plain, bool finite, const Exact& exact) const {
    if (!finite) return round(f, plain);
    const double result = rounded_once(f, rounding, exact);
    return result == 0 ? std::copysign(0.0, plain) : result;
  }
  double add(const FloatFormat& f, double a, double b) const {
    return once(f, a + b, std::isfinite(a) && std::isfinite(b), Exact(a) + Exact(b));
  }
  double multiply(const FloatFormat& f, double a, double b) const {
    return once(f, a * b, std::isfinite(a) && std::isfinite(b), Exact(a) * Exact(b));
  }
  double divide(const FloatFormat& f, double a, double b) const {
    const bool finite = std::isfinite(a) && std::isfinite(b) && b != 0;
    return finite ? once(f, a / b, true, Exact(a) / Exact(b)) : round(f, a / b);
  }
  double fused(const FloatFormat& f, double a, double b, double c) const {
    const bool finite = std::isfinite(a) && std::isfinite(b) && std::isfinite(c);
    return once(f, std::fma(a, b, c), finite, Exact(a) * Exact(b) + Exact(c));
  }
  // 2^lift e^x or 2^x.
  double power(const FloatFormat& f, bool base_two, double x, int lift) const {
    if (!std::isfinite(x)) return round(f, std::exp(x));
    return rounded_once(f, rounding, exact_exponential(x, base_two) * exact_power_of_two(lift));
  }
};

struct Oracle {
  Recipe recipe;
  Problem problem;
  Inputs inputs;
  Sequence at;
  Index head;
  Schedule schedule;
  Operations op;

  double q(Index row, Index c) const { return inputs.q(at.batch, head, at.q_begin + row, c); }
  double k(Index row, Index c) const {
    return inputs.k(at.batch, head * problem.num_heads_kv / problem.num_heads_q, at.kv_begin + row,
                    c);
  }
  double v(Index row, Index c) const {
    return inputs.v(at.batch, head * problem.num_heads_kv / problem.num_heads_q, at.kv_begin + row,
                    c);
  }
};

double tree(const Oracle& o, const FloatFormat& sum, const Vector& terms, std::size_t first,
            std::size_t last) {
  if (last - first == 1) return terms[first];
  const std::size_t middle = first + (last - first) / 2;
  return o.op.add(sum, tree(o, sum, terms, first, middle), tree(o, sum, terms, middle, last));
}

double blocks(const Accumulation& how, double x, const Vector& terms) {
  const auto block = static_cast<std::size_t>(how.block);
  for (std::size_t first = 0; first < terms.size(); first += block) {
    const std::size_t last = std::min(first + block, terms.size());
    Vector part(terms.begin() + static_cast<std::ptrdiff_t>(first),
                terms.begin() + static_cast<std::ptrdiff_t>(last));
    bool finite = std::isfinite(x);
    double plain = x;
    for (const double term : part) {
      finite = finite && std::isfinite(term);
      plain += term;
    }
    x = finite ? aligned_once(x, part, how.alignment_bits, how.sum) : plain;
  }
  return x;
}

double dot(const Oracle& o, const Accumulation& how, double x, const Vector& a, const Vector& b) {
  Vector products;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (how.order == SumOrder::sequential) {
      x = how.product ? o.op.add(how.sum, x, o.op.multiply(*how.product, a[k], b[k]))
                      : o.op.fused(how.sum, a[k], b[k], x);
    } else if (how.product) {
      products.push_back(o.op.multiply(*how.product, a[k], b[k]));
    } else if (how.order == SumOrder::pairwise) {
      products.push_back(o.op.multiply(how.sum, a[k], b[k]));
    } else {
      products.push_back(a[k] * b[k]);  // exact: operands of 26 bits at most
    }
  }
  if (how.order == SumOrder::pairwise && !products.empty()) {
    return o.op.add(how.sum, x, tree(o, how.sum, products, 0, products.size()));
  }
  return how.order == SumOrder::tensor_core ? blocks(how, x, products) : x;
}

double logit(const Oracle& o, Index row, Index key) {
  if (!o.schedule.visible(row, key)) return -kInfinity;
  const FloatFormat& f = o.recipe.scores;
  Vector a;
  Vector b;
  for (Index c = 0; c < o.problem.head_dim; ++c) {
    a.push_back(o.q(row, c));
    b.push_back(o.k(key, c));
  }
  const double product = o.op.round(f, dot(o, o.recipe.scores_product, 0, a, b));
  double x = o.op.multiply(f, product, o.op.round(f, softmax_scale(o.problem)));
  if (o.problem.softcap != 0) {
    const double cap = o.op.round(f, o.problem.softcap);
    x = o.op.multiply(f, cap, o.op.round(f, std::tanh(o.op.divide(f, x, cap))));
  }
  if (!o.problem.alibi_slopes.empty()) {
    const double slope = o.op.round(f, o.problem.alibi_slopes[static_cast<std::size_t>(o.head)]);
    const Index distance = std::abs(row + o.at.seqlen_kv - o.at.seqlen_q - key);
    const double steps = o.op.round(f, static_cast<double>(distance));
    x = o.op.add(f, x, -o.op.multiply(f, slope, steps));
  }
  return x;
}

double block_maximum(const Oracle& o, const Vector& scores) {
  double largest = -kInfinity;
  for (const double s : scores) largest = std::max(largest, s);
  const auto ties = std::count(scores.begin(), scores.end(), largest);
  if (o.recipe.shift == Shift::avoid_one && ties > 1 && std::isfinite(largest)) {
    const double beta = round_to(o.recipe.scores, o.recipe.shift_factor);
    if (largest > 0) return o.op.multiply(o.recipe.scores, largest, beta);
    if (largest < 0) return 0;
  }
  return largest;
}

double log2_e(const Oracle& o) { return round_to(o.recipe.scores, std::numbers::log2e); }

double flushed(const FloatFormat& f, double x) { return x < smallest_normal(f) ? 0 : x; }

double polynomial(int degree, double t) {
  if (t < -126) return 0;
  if (t >= 128) return kInfinity;
  const auto x = static_cast<float>(t);
  const float fraction = x - std::floor(x);
  float sum = 0;
  for (int k = degree; k >= 0; --k) {
    sum = std::fma(sum, fraction, exp2_coefficients(degree)[static_cast<std::size_t>(k)]);
  }
  return std::ldexp(static_cast<double>(sum), static_cast<int>(std::floor(x)));
}

double weight(const Oracle& o, double score, double maximum) {
  if (score == -kInfinity) return 0;
  const Recipe& r = o.recipe;
  const FloatFormat& target = r.sum_of_rounded ? r.probabilities : r.scores;
  const int offset = r.weight_offset_log2;
  if (r.exponential.kind == ExponentialKind::correctly_rounded) {
    return o.op.power(target, false, o.op.add(r.scores, score, -maximum), offset);
  }
  const double shift = o.op.fused(r.scores, maximum, log2_e(o), -static_cast<double>(offset));
  const double t = o.op.fused(r.scores, score, log2_e(o), -shift);
  if (r.exponential.kind == ExponentialKind::hardware) {
    return flushed(target, o.op.power(target, true, t, 0));
  }
  return flushed(target, o.op.round(target, polynomial(r.exponential.degree, t)));
}

double rescale_factor(const Oracle& o, double before, double after) {
  if (before == after) return 1;
  const FloatFormat& f = o.recipe.statistics;
  const double difference = o.op.add(f, before, -after);
  if (o.recipe.exponential.kind == ExponentialKind::correctly_rounded) {
    return o.op.power(f, false, difference, 0);
  }
  return flushed(f, o.op.power(f, true, o.op.multiply(f, difference, log2_e(o)), 0));
}

// Of one row: maximum and sum, and the accumulated output.
struct State {
  double maximum = -kInfinity;
  double sum = 0;
  Vector o;
};

State begin(const Oracle& o) {
  State state;
  state.o.assign(static_cast<std::size_t>(o.problem.head_dim_v), 0.0);
  if (!o.problem.sink.empty()) {
    state.maximum = o.op.round(o.recipe.scores, o.problem.sink[static_cast<std::size_t>(o.head)]);
    state.sum = round_to(o.recipe.statistics, std::ldexp(1.0, o.recipe.weight_offset_log2));
  }
  return state;
}

// Folds scores into maximum and sum; they become weights. Returns the factor of what was before.
double fold(const Oracle& o, State& state, Vector& scores) {
  const Recipe& r = o.recipe;
  const double before = state.maximum;
  double after = std::max(o.op.round(r.statistics, block_maximum(o, scores)), before);
  if (before != -kInfinity && r.rescale.rule == RescaleRule::beyond_threshold) {
    const double tau = round_to(r.statistics, r.rescale.threshold_log2 * std::numbers::ln2);
    if (tau > 0 && o.op.add(r.statistics, after, -before) <= tau) after = before;
  }
  state.maximum = after;
  for (double& s : scores) s = weight(o, s, after);
  const double factor = rescale_factor(o, before, after);
  if (factor != 1) state.sum = o.op.multiply(r.statistics, state.sum, factor);
  if (r.row_sum == SumOrder::pairwise && !scores.empty()) {
    Vector leaves = scores;
    for (double& leaf : leaves) leaf = o.op.round(r.statistics, leaf);
    state.sum = o.op.add(r.statistics, state.sum, tree(o, r.statistics, leaves, 0, leaves.size()));
  } else {
    for (const double w : scores) state.sum = o.op.add(r.statistics, state.sum, w);
  }
  return factor;
}

// o += P V over the keys from `first` on.
void accumulate(const Oracle& o, State& state, const Vector& weights, Index first) {
  Vector p;
  for (const double w : weights) p.push_back(o.op.round(o.recipe.probabilities, w));
  for (Index c = 0; c < o.problem.head_dim_v; ++c) {
    Vector values;
    for (std::size_t k = 0; k < p.size(); ++k) {
      values.push_back(o.v(first + static_cast<Index>(k), c));
    }
    double& x = state.o[static_cast<std::size_t>(c)];
    x = o.op.round(o.recipe.accumulator, dot(o, o.recipe.values_product, x, p, values));
  }
}

Oracle oracle(const Recipe& recipe, const Problem& problem, const Tile& tile, const Inputs& inputs,
              const Sequence& at, Index head) {
  return {recipe, problem, inputs, at, head, schedule_for(problem, tile, at), {recipe.rounding}};
}

}  // namespace

std::vector<OracleRow> flash2_oracle(const Recipe& recipe, const Problem& problem, const Tile& tile,
                                     const Inputs& inputs, const Sequence& at, Index head) {
  const Oracle o = oracle(recipe, problem, tile, inputs, at, head);
  std::vector<OracleRow> rows;
  for (Index row = 0; row < at.seqlen_q; ++row) {
    State state = begin(o);
    for (const Block& block : o.schedule.kv_blocks(row / tile.block_q)) {
      Vector scores;
      for (Index key = block.span.begin; key < block.span.end; ++key) {
        scores.push_back(logit(o, row, key));
      }
      const double factor = fold(o, state, scores);
      for (double& x : state.o) {
        if (factor != 1) x = o.op.multiply(recipe.accumulator, x, factor);
      }
      accumulate(o, state, scores, block.span.begin);
    }
    for (double& x : state.o) {
      x = state.sum == 0 ? 0 : o.op.divide(recipe.accumulator, x, state.sum);
      x = o.op.round(recipe.stored, x);
    }
    const double log_sum = std::log(state.sum) - recipe.weight_offset_log2 * std::numbers::ln2;
    const double lse =
        o.op.add(recipe.statistics, state.maximum, o.op.round(recipe.statistics, log_sum));
    rows.push_back({state.o, lse});
  }
  return rows;
}

std::vector<OracleRow> standard_oracle(const Recipe& recipe, const Problem& problem,
                                       const Tile& tile, const Inputs& inputs, const Sequence& at,
                                       Index head) {
  const Oracle o = oracle(recipe, problem, tile, inputs, at, head);
  std::vector<OracleRow> rows;
  for (Index row = 0; row < at.seqlen_q; ++row) {
    State state = begin(o);
    Vector scores;
    for (Index key = 0; key < at.seqlen_kv; ++key) {
      scores.push_back(o.op.round(recipe.stored, logit(o, row, key)));
    }
    fold(o, state, scores);
    for (double& p : scores) {
      p = state.sum == 0 ? 0 : o.op.divide(recipe.scores, p, state.sum);
      p = o.op.round(recipe.stored, p);
    }
    accumulate(o, state, scores, 0);
    for (double& x : state.o) x = o.op.round(recipe.stored, x);
    rows.push_back({state.o, 0});
  }
  return rows;
}

}  // namespace flashbound::testing
