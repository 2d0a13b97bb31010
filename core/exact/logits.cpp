#include "core/exact/logits.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace flashbound {
namespace {

using RowRef = Eigen::Ref<const Eigen::RowVectorXd>;

// What the terms of q.k that are not finite add up to: 0, an infinity or NaN.
double non_finite_part(const RowRef& q, const RowRef& k) {
  double sum = 0;
  for (Index c = 0; c < q.size(); ++c) {
    if (!std::isfinite(q(c)) || !std::isfinite(k(c))) sum += q(c) * k(c);
  }
  return sum;
}

// Likewise of a visible pair, with `product` = scale x non_finite_part.
Pair classify(double product, double softcap) {
  if (std::isnan(product)) return Pair::undefined;
  if (std::isfinite(product) || softcap > 0) return Pair::finite;
  return product > 0 ? Pair::undefined : Pair::vanishing;
}

Index distance(const Head& head, Index query, Index key) {
  const Shape& shape = head.schedule().shape;
  return std::abs(query + shape.seqlen_kv - shape.seqlen_q - key);
}

// Scale, softcap and ALiBi, with numbers that a block shares.
class Modifier {
 public:
  Modifier(const Head& head, slong precision) : head_(&head), precision_(precision) {
    arb_set_d(scale_.get(), softmax_scale(head.problem()));
    arb_set_d(softcap_.get(), head.problem().softcap);
    arb_set_d(alibi_.get(), head.alibi_slope());
  }
  bool has_softcap() const { return head_->problem().softcap > 0; }

  // Turns q.k into a logit; `slope` may be null.
  void apply(arb_ptr logit, arb_ptr slope, Index query, Index key) {
    arb_mul(logit, logit, scale_.get(), precision_);
    if (has_softcap()) cap(logit, slope);
    add_bias(logit, query, key);
  }
  // The same where q.k is infinite.
  void apply_limit(arb_ptr logit, double product, Index query, Index key) {
    arb_set_d(logit, std::copysign(head_->problem().softcap, product));
    add_bias(logit, query, key);
  }

 private:
  void cap(arb_ptr logit, arb_ptr slope) {
    arb_div(logit, logit, softcap_.get(), precision_);
    if (slope != nullptr) {
      arb_sech(slope, logit, precision_);  // 1 - tanh^2 = sech^2, without cancellation
      arb_sqr(slope, slope, precision_);
    }
    arb_tanh(logit, logit, precision_);
    arb_mul(logit, logit, softcap_.get(), precision_);
  }
  void add_bias(arb_ptr logit, Index query, Index key) {
    if (head_->alibi_slope() == 0) return;
    arb_submul_si(logit, alibi_.get(), distance(*head_, query, key), precision_);
  }

  const Head* head_;
  slong precision_;
  Ball scale_, softcap_, alibi_;
};

ExactLogit exact_logit(const Head& head, const RowRef& q, const RowRef& k, Index query, Index key) {
  const double scale = softmax_scale(head.problem());
  const double softcap = head.problem().softcap;
  ExactLogit logit;
  Dyadic bias(-head.alibi_slope());
  bias *= Dyadic(static_cast<double>(distance(head, query, key)));
  const double special = non_finite_part(q, k);
  if (!std::isfinite(special)) {
    logit.plain = Dyadic(std::copysign(softcap, special * scale));
  } else {
    Dyadic& product = softcap > 0 ? logit.capped : logit.plain;
    product = exact_product(q, k);
    product *= Dyadic(scale);
  }
  logit.plain += bias;
  return logit;
}

// Calls f(key, logit) for the keys of positive weight until it returns false.
template <class F>
void for_each_logit(const Head& head, Index query, const F& f) {
  const Schedule by_row = head.schedule().with_tile({.block_q = 1, .block_kv = 512});
  const RowMatrix q = head.queries({query, query + 1});
  const double scale = softmax_scale(head.problem());
  for (const Block& block : by_row.kv_blocks(query)) {
    const RowMatrix k = head.keys(block.span);
    for (Index key = block.span.begin; key < block.span.end; ++key) {
      if (block.coverage != Coverage::full && !by_row.visible(query, key)) continue;
      const auto k_row = k.row(key - block.span.begin);
      const double product = scale * non_finite_part(q.row(0), k_row);
      if (classify(product, head.problem().softcap) == Pair::vanishing) continue;
      if (!f(key, exact_logit(head, q.row(0), k_row, query, key))) return;
    }
  }
}

}  // namespace

BallMatrix balls_of(const RowMatrix& values) {
  BallMatrix balls(values.rows(), values.cols());
  for (Index r = 0; r < values.rows(); ++r) {
    for (Index c = 0; c < values.cols(); ++c) {
      if (std::isfinite(values(r, c))) arb_set_d(balls(r, c), values(r, c));
    }
  }
  return balls;
}

Operand operand(RowMatrix values) {
  Operand result;
  result.balls = balls_of(values);
  result.finite = values.allFinite();
  result.values = std::move(values);
  return result;
}

void fill_logits(const Head& head, Interval rows, const Block& keys, const Operand& q,
                 const Operand& k, Index column, slong precision, PairLogits& result) {
  Modifier modifier(head, precision);
  const double scale = softmax_scale(head.problem());
  const Index head_dim = q.balls.cols();
  for (Index r = 0; r < rows.size(); ++r) {
    const Index query = rows.begin + r;
    for (Index c = 0; c < keys.span.size(); ++c) {
      const Index key = keys.span.begin + c;
      if (keys.coverage != Coverage::full && !head.schedule().visible(query, key)) continue;
      const double product =
          q.finite && k.finite ? 0 : scale * non_finite_part(q.values.row(r), k.values.row(c));
      Pair& pair = result.pairs[static_cast<std::size_t>(r * result.logits.cols() + column + c)];
      pair = classify(product, head.problem().softcap);
      if (pair != Pair::finite) continue;
      arb_ptr logit = result.logits(r, column + c);
      if (std::isfinite(product)) {
        arb_ptr slope = result.slopes.rows() > 0 ? result.slopes(r, column + c) : nullptr;
        arb_dot(logit, nullptr, 0, q.balls(r, 0), 1, k.balls(c, 0), 1, head_dim, precision);
        modifier.apply(logit, slope, query, key);
      } else {
        modifier.apply_limit(logit, product, query, key);
      }
    }
  }
}

Ball ball_of(const ExactLogit& logit, double softcap, slong precision) {
  Ball result;
  if (!logit.capped.is_zero()) {
    Ball cap;
    arb_set_d(cap.get(), softcap);
    arb_set_arf(result.get(), logit.capped.get());
    arb_div(result.get(), result.get(), cap.get(), precision);
    arb_tanh(result.get(), result.get(), precision);
    arb_mul(result.get(), result.get(), cap.get(), precision);
    arb_add_arf(result.get(), result.get(), logit.plain.get(), precision);
  } else {
    arb_set_arf(result.get(), logit.plain.get());
  }
  return result;
}

Dyadic exact_product(const RowRef& a, const RowRef& b) {
  Dyadic sum;
  for (Index c = 0; c < a.size(); ++c) sum.add_product(Dyadic(a(c)), Dyadic(b(c)));
  return sum;
}

ExactRow exact_row(const Head& head, Index query) {
  ExactRow row;
  for_each_logit(head, query, [&](Index key, ExactLogit logit) {
    row.keys.push_back(key);
    row.logits.push_back(std::move(logit));
    return true;
  });
  return row;
}

bool has_equal_logits(const Head& head, Index query) {
  std::optional<ExactLogit> first;
  if (head.sink()) first = ExactLogit{Dyadic(), Dyadic(*head.sink())};
  bool equal = true;
  for_each_logit(head, query, [&](Index, ExactLogit logit) {
    if (first && !(*first == logit)) equal = false;
    if (!first) first = std::move(logit);
    return equal;
  });
  return equal;
}

}  // namespace flashbound
