#include "tests/core/gradient_oracle.hpp"

#include "experiments/random_inputs.hpp"
#include "tests/core/attention_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace flashbound::testing {
namespace {

struct Arithmetic {
  long double l = 0;  // of one rounding
  long double smallest_normal = 0;
};

Arithmetic arithmetic_of(NumberFormat format) {
  return {-std::log1p(-static_cast<long double>(unit_roundoff(format))),
          std::pow(2.0L, static_cast<long double>(facts(format).exponent_min))};
}

// One visible pair.
struct Seen {
  Index key = 0;
  long double logit = 0;
  long double p = 0;
  long double dp = 0;
  long double slope = 0;         // d logit / d (q k^T)
  long double dp_magnitude = 0;  // A
};

struct Row {
  std::vector<Seen> seen{};
  long double delta = 0;
  long double delta_magnitude = 0;  // B
  long double p_error = 0;          // e
  long double score_error = 0;      // the exponent of dS, without the sums that follow
};

struct Oracle {
  const Problem& problem;
  const Inputs& in;
  const TensorView<const double>& grad_o;
  Index batch, head;
  Arithmetic arithmetic;
  long double updates = 0;

  Index kv_head() const { return head / (problem.num_heads_q / problem.num_heads_kv); }
  long double q(Index i, Index c) const { return in.q(batch, head, i, c); }
  long double k(Index j, Index c) const { return in.k(batch, kv_head(), j, c); }
  long double v(Index j, Index c) const { return in.v(batch, kv_head(), j, c); }
  long double go(Index i, Index c) const { return grad_o(batch, head, i, c); }
  long double scale() const {
    return problem.softmax_scale ? *problem.softmax_scale
                                 : 1.0 / std::sqrt(static_cast<double>(problem.head_dim));
  }

  Row row(Index i) const;
  void errors(Index i, Row& row, long double lse, long double maximum) const;
  void add(Index i, const Row& row, OracleGradients& sum) const;
};

Row Oracle::row(Index i) const {
  Row result;
  const VisibleLogits logits = visible_logits(problem, in, batch, head, i);
  long double maximum = -std::numeric_limits<long double>::infinity();
  long double sum = 0;
  if (!problem.sink.empty()) maximum = problem.sink[static_cast<std::size_t>(head)];
  for (const long double s : logits.logits) maximum = std::isnan(s) || s > maximum ? s : maximum;
  if (!problem.sink.empty()) {
    sum +=
        std::exp(static_cast<long double>(problem.sink[static_cast<std::size_t>(head)]) - maximum);
  }
  for (const long double s : logits.logits) sum += std::exp(s - maximum);
  for (std::size_t n = 0; n < logits.keys.size(); ++n) {
    Seen pair{logits.keys[n], logits.logits[n]};
    pair.p = std::exp(pair.logit - maximum) / sum;
    long double product = 0;
    for (Index c = 0; c < problem.head_dim; ++c) product += q(i, c) * k(pair.key, c);
    pair.slope = scale();
    if (problem.softcap > 0) {
      const long double t = std::tanh(product * scale() / problem.softcap);
      pair.slope *= 1 - t * t;
    }
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      pair.dp += go(i, c) * v(pair.key, c);
      pair.dp_magnitude += std::abs(go(i, c) * v(pair.key, c));
    }
    result.delta += pair.p * pair.dp;
    result.delta_magnitude += pair.p * pair.dp_magnitude;
    result.seen.push_back(pair);
  }
  errors(i, result, maximum + std::log(sum), maximum);
  return result;
}

void Oracle::errors(Index i, Row& row, long double lse, long double maximum) const {
  if (row.seen.empty()) return;
  const long double l = arithmetic.l;
  long double product = 0;  // |scale| sum |q k|, the largest
  long double bias = 0;
  long double reach = 0;  // R
  for (const Seen& pair : row.seen) {
    long double magnitude = 0;
    for (Index c = 0; c < problem.head_dim; ++c) magnitude += std::abs(q(i, c) * k(pair.key, c));
    product = std::max(product, std::abs(scale()) * magnitude);
    reach = std::max({reach, std::abs(pair.logit - lse), std::abs(pair.logit - maximum)});
  }
  if (!problem.alibi_slopes.empty()) {
    const auto slope =
        static_cast<long double>(problem.alibi_slopes[static_cast<std::size_t>(head)]);
    bias = std::abs(slope) * static_cast<long double>(problem.seqlen_q + problem.seqlen_kv);
  }
  const auto d = static_cast<long double>(problem.head_dim);
  const auto dv = static_cast<long double>(problem.head_dim_v);
  const auto n = static_cast<long double>(row.seen.size());
  const long double cap = problem.softcap;
  long double logit_error =
      std::expm1((d + 2) * l) * product + (d + 8) * arithmetic.smallest_normal;
  if (cap > 0) row.score_error += logit_error / cap + 24 * l;
  if (cap > 0) logit_error += 12 * l * std::min(cap, product);
  if (bias > 0) logit_error += l * (4 * bias + product);
  const long double size = std::max(std::abs(lse), std::abs(maximum));  // M
  row.p_error = 2 * logit_error + (2 * reach + n + 6 * size + 12 + 3 * updates) * l;
  row.score_error += 2 * row.p_error + (n + dv + 12 + 8 * updates) * l;
}

void Oracle::add(Index i, const Row& row, OracleGradients& sum) const {
  const long double l = arithmetic.l;
  const long double lost = 4 * arithmetic.smallest_normal;
  const auto n = static_cast<long double>(row.seen.size());
  const auto m = static_cast<long double>(problem.seqlen_q);
  const long double for_q = std::expm1(row.score_error + n * l);
  const long double for_k = std::expm1(row.score_error + m * l);
  const long double for_v = std::expm1(row.p_error + m * l);
  const auto terms = n + static_cast<long double>(problem.head_dim_v) + 2;
  for (const Seen& pair : row.seen) {
    const long double ds = pair.p * (pair.dp - row.delta) * pair.slope;
    const long double magnitude = pair.dp_magnitude + row.delta_magnitude;  // A + B
    const long double weight = std::abs(scale()) * pair.p * magnitude;
    const long double underflow = lost * (1 + std::abs(scale())) * (magnitude + terms);
    for (Index c = 0; c < problem.head_dim; ++c) {
      sum.q(i, c) += ds * k(pair.key, c);
      sum.q_bound(i, c) += weight * std::abs(k(pair.key, c)) * for_q;
      sum.q_bound(i, c) += underflow * (1 + std::abs(k(pair.key, c)));
      sum.k(pair.key, c) += ds * q(i, c);
      sum.k_bound(pair.key, c) += weight * std::abs(q(i, c)) * for_k;
      sum.k_bound(pair.key, c) += underflow * (1 + std::abs(q(i, c)));
    }
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      sum.v(pair.key, c) += pair.p * go(i, c);
      sum.v_bound(pair.key, c) += pair.p * std::abs(go(i, c)) * for_v;
      sum.v_bound(pair.key, c) += lost * (1 + std::abs(go(i, c)));
    }
  }
}

}  // namespace

OracleGradients oracle_gradients(const Problem& problem, const Inputs& inputs,
                                 const TensorView<const double>& grad_o, Index batch, Index head,
                                 NumberFormat format, Index updates) {
  const Grid of_q(problem.seqlen_q, problem.head_dim);
  const Grid of_k(problem.seqlen_kv, problem.head_dim);
  const Grid of_v(problem.seqlen_kv, problem.head_dim_v);
  OracleGradients result{of_q, of_k, of_v, of_q, of_k, of_v};
  const Oracle oracle{problem,
                      inputs,
                      grad_o,
                      batch,
                      head,
                      arithmetic_of(format),
                      static_cast<long double>(updates)};
  for (Index i = 0; i < problem.seqlen_q; ++i) oracle.add(i, oracle.row(i), result);
  // Extended precision rounds 2^11 times finer than fp64, whose bound this is in proportion.
  for (Grid* bound : {&result.q_bound, &result.k_bound, &result.v_bound}) {
    for (long double& value : bound->values) value *= 1 + 0x1p-10L;
  }
  return result;
}

Tensor<double> normal_grad_o(const Problem& problem, std::uint64_t seed) {
  Tensor<double> result({problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v});
  std::mt19937_64 engine(seed ^ 0x6f5d00d5U);
  for (double& value : result.elements) value = static_cast<float>(normal(engine));
  return result;
}

}  // namespace flashbound::testing
