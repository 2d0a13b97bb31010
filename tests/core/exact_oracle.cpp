#include "tests/core/exact_oracle.hpp"

#include "core/exact/ball.hpp"
#include "tests/core/attention_oracle.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace flashbound::testing {
namespace {

// Zero where the ball holds it, and the middle in 200 bits otherwise, so that a number as near to a
// boundary as that is on it. NaN where the ball is too wide for that.
double rounded(const Ball& ball) {
  const bool zero = arb_contains_zero(ball.get()) != 0;
  const bool narrow = zero ? mag_cmp_2exp_si(arb_radref(ball.get()), -200) < 0
                           : arb_rel_accuracy_bits(ball.get()) > 210;
  if (!narrow) return std::numeric_limits<double>::quiet_NaN();
  Dyadic middle;
  arf_set_round(middle.get(), arb_midref(ball.get()), 200, ARF_RND_NEAR);
  return zero ? 0 : arf_get_d(middle.get(), ARF_RND_NEAR);
}

struct LongRow {
  std::vector<Index> keys;
  std::vector<Ball> logits, weights, slopes;  // exp(logit) / sum, d logit / d (q.k)
  Ball sum;                                   // of exp(logit), the sink included
};

class Oracle {
 public:
  Oracle(const Problem& problem, const Inputs& inputs, Index precision)
      : p_(problem), in_(inputs), precision_(precision) {}

  LongRow row(Index b, Index h, Index i) const {
    LongRow row;
    row.keys = visible_logits(p_, in_, b, h, i).keys;
    const Sequence at = sequence_of(b, i);
    if (!p_.sink.empty()) {
      arb_set_d(row.sum.get(), p_.sink[static_cast<std::size_t>(h)]);
      arb_exp(row.sum.get(), row.sum.get(), precision_);
    }
    for (const Index j : row.keys) {
      Ball slope;
      Ball logit = product(in_.q, b, h, i, in_.k, key_head(h), j);
      modify(logit, slope);
      if (!p_.alibi_slopes.empty()) {
        const Index place = i - at.q_begin + at.seqlen_kv - at.seqlen_q;
        Ball bias;
        arb_set_d(bias.get(), p_.alibi_slopes[static_cast<std::size_t>(h)]);
        arb_submul_si(logit.get(), bias.get(), std::abs(place - (j - at.kv_begin)), precision_);
      }
      Ball weight;
      arb_exp(weight.get(), logit.get(), precision_);
      arb_add(row.sum.get(), row.sum.get(), weight.get(), precision_);
      row.logits.push_back(logit);
      row.weights.push_back(weight);
      row.slopes.push_back(slope);
    }
    for (Ball& weight : row.weights) {
      arb_div(weight.get(), weight.get(), row.sum.get(), precision_);
    }
    return row;
  }

  Ball product(const TensorView<const double>& x, Index b, Index h, Index i,
               const TensorView<const double>& y, Index g, Index j) const {
    Ball sum;
    for (Index c = 0; c < x.shape[3]; ++c) {
      Ball factor;
      arb_set_d(factor.get(), x(b, h, i, c));
      add(sum, factor, y(b, g, j, c));
    }
    return sum;
  }
  // sum += a y
  void add(Ball& sum, const Ball& a, double y) const {
    Ball factor;
    arb_set_d(factor.get(), y);
    arb_addmul(sum.get(), a.get(), factor.get(), precision_);
  }
  Index key_head(Index h) const { return h / (p_.num_heads_q / p_.num_heads_kv); }
  slong precision() const { return precision_; }

 private:
  Sequence sequence_of(Index b, Index i) const {
    if (p_.cu_seqlens_q.empty()) return sequence(p_, b);
    Index s = 0;
    while (p_.cu_seqlens_q[static_cast<std::size_t>(s) + 1] <= i) ++s;
    return sequence(p_, s);
  }
  void modify(Ball& logit, Ball& slope) const {
    Ball number;
    arb_set_d(number.get(), softmax_scale(p_));
    arb_mul(logit.get(), logit.get(), number.get(), precision_);
    slope = number;
    if (p_.softcap == 0) return;
    arb_set_d(number.get(), p_.softcap);
    arb_div(logit.get(), logit.get(), number.get(), precision_);
    arb_tanh(logit.get(), logit.get(), precision_);
    Ball square;
    arb_sqr(square.get(), logit.get(), precision_);
    arb_sub_ui(square.get(), square.get(), 1, precision_);
    arb_neg(square.get(), square.get());
    arb_mul(slope.get(), slope.get(), square.get(), precision_);
    arb_mul(logit.get(), logit.get(), number.get(), precision_);
  }

  const Problem& p_;
  const Inputs& in_;
  slong precision_;
};

// A sum for each element of a tensor.
struct Sums {
  std::array<Index, 4> shape;
  std::vector<Ball> balls;
  explicit Sums(const std::array<Index, 4>& of)
      : shape(of), balls(static_cast<std::size_t>(of[0] * of[1] * of[2] * of[3])) {}
  Ball& operator()(Index b, Index h, Index i, Index c) {
    return balls[static_cast<std::size_t>(((b * shape[1] + h) * shape[2] + i) * shape[3] + c)];
  }
  Tensor<double> rounded_tensor() const {
    Tensor<double> result(shape);
    for (std::size_t n = 0; n < balls.size(); ++n) result.elements[n] = rounded(balls[n]);
    return result;
  }
};

template <class F>
void for_each_row(const Problem& p, const F& f) {
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      for (Index i = 0; i < p.seqlen_q; ++i) f(b, h, i);
    }
  }
}

Ball output(const Oracle& oracle, const LongRow& row, const Inputs& in, Index b, Index h, Index c) {
  Ball o;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    oracle.add(o, row.weights[n], in.v(b, oracle.key_head(h), row.keys[n], c));
  }
  return o;
}

}  // namespace

LongAttention long_attention(const Problem& p, const Inputs& in, Index precision) {
  LongAttention result{Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}),
                       Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, 1})};
  const Oracle oracle(p, in, precision);
  for_each_row(p, [&](Index b, Index h, Index i) {
    const LongRow row = oracle.row(b, h, i);
    for (Index c = 0; c < p.head_dim_v; ++c) {
      result.o.view()(b, h, i, c) = rounded(output(oracle, row, in, b, h, c));
    }
    double& lse = result.lse.view()(b, h, i, 0);
    lse = -std::numeric_limits<double>::infinity();
    if (arb_is_zero(row.sum.get()) != 0) return;
    Ball logarithm;
    arb_log(logarithm.get(), row.sum.get(), oracle.precision());
    lse = rounded(logarithm);
  });
  return result;
}

LongGradients long_gradients(const Problem& p, const Inputs& in,
                             const TensorView<const double>& grad_o, Index precision) {
  Sums q(in.q.shape), k(in.k.shape), v(in.v.shape);
  const Oracle oracle(p, in, precision);
  for_each_row(p, [&](Index b, Index h, Index i) {
    const LongRow row = oracle.row(b, h, i);
    const Index g = oracle.key_head(h);
    std::vector<Ball> grads;  // of the weights
    Ball delta;
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      grads.push_back(oracle.product(grad_o, b, h, i, in.v, g, row.keys[n]));
      arb_addmul(delta.get(), row.weights[n].get(), grads[n].get(), oracle.precision());
    }
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      Ball grad;  // of q.k
      arb_sub(grad.get(), grads[n].get(), delta.get(), oracle.precision());
      arb_mul(grad.get(), grad.get(), row.weights[n].get(), oracle.precision());
      arb_mul(grad.get(), grad.get(), row.slopes[n].get(), oracle.precision());
      const Index j = row.keys[n];
      for (Index c = 0; c < p.head_dim; ++c) {
        oracle.add(q(b, h, i, c), grad, in.k(b, g, j, c));
        oracle.add(k(b, g, j, c), grad, in.q(b, h, i, c));
      }
      for (Index c = 0; c < p.head_dim_v; ++c) {
        oracle.add(v(b, g, j, c), row.weights[n], grad_o(b, h, i, c));
      }
    }
  });
  return {q.rounded_tensor(), k.rounded_tensor(), v.rounded_tensor()};
}

double difference_quotient(const Problem& p, const Inputs& plus, const Inputs& minus,
                           const TensorView<const double>& grad_o, double step, Index precision) {
  Ball sum;
  const Oracle above(p, plus, precision);
  const Oracle below(p, minus, precision);
  for_each_row(p, [&](Index b, Index h, Index i) {
    const LongRow high = above.row(b, h, i);
    const LongRow low = below.row(b, h, i);
    for (Index c = 0; c < p.head_dim_v; ++c) {
      above.add(sum, output(above, high, plus, b, h, c), grad_o(b, h, i, c));
      above.add(sum, output(below, low, minus, b, h, c), -grad_o(b, h, i, c));
    }
  });
  Ball width;
  arb_set_d(width.get(), 2 * step);
  arb_div(sum.get(), sum.get(), width.get(), precision);
  return arf_get_d(arb_midref(sum.get()), ARF_RND_NEAR);
}

}  // namespace flashbound::testing
