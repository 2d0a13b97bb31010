// An online softmax written for the tests of the error bound: plain loops, any width.
#pragma once

#include "core/problem.hpp"
#include "core/tensor.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

namespace flashbound::testing {

inline constexpr Tile kKeyByKey{.block_q = 1, .block_kv = 1};

// One row by an online softmax of one key at a time: the most rescales possible.
template <class Scalar>
struct OnlineRow {
  std::vector<Scalar> o;
  Scalar lse;
};

// How weights are kept between their exponential and their product.
enum class Weights { exact, rounded_to_bf16 };

template <class Scalar>
OnlineRow<Scalar> online_row(const Problem& p, const Inputs& in, const Sequence& at, Index head,
                             Index row, Weights kept = Weights::exact) {
  const auto h = static_cast<std::size_t>(head);
  const Index kv_head = head / q_heads_per_kv_head(p);
  const Schedule schedule = schedule_for(p, kKeyByKey, at);
  const auto scale = static_cast<Scalar>(softmax_scale(p));
  const auto cap = static_cast<Scalar>(p.softcap);
  std::vector<Scalar> o(static_cast<std::size_t>(p.head_dim_v));
  Scalar maximum =
      p.sink.empty() ? -std::numeric_limits<Scalar>::infinity() : static_cast<Scalar>(p.sink[h]);
  Scalar sum = p.sink.empty() ? 0 : 1;
  for (Index key = 0; key < at.seqlen_kv; ++key) {
    if (!schedule.visible(row, key)) continue;
    Scalar s = 0;
    for (Index c = 0; c < p.head_dim; ++c) {
      s += static_cast<Scalar>(in.q(at.batch, head, at.q_begin + row, c)) *
           static_cast<Scalar>(in.k(at.batch, kv_head, at.kv_begin + key, c));
    }
    s *= scale;
    if (cap > 0) s = cap * std::tanh(s / cap);
    if (!p.alibi_slopes.empty()) {
      const Index distance = std::abs(row + at.seqlen_kv - at.seqlen_q - key);
      s -= static_cast<Scalar>(p.alibi_slopes[h]) * static_cast<Scalar>(distance);
    }
    const Scalar larger = s > maximum ? s : maximum;
    const Scalar factor = larger == maximum ? 1 : std::exp(maximum - larger);
    Scalar weight = std::exp(s - larger);
    sum = sum * factor + weight;
    if (kept == Weights::rounded_to_bf16) {
      int exponent = 0;
      const Scalar fraction = std::frexp(weight, &exponent);
      weight = std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
    }
    for (Index c = 0; c < p.head_dim_v; ++c) {
      Scalar& sum_c = o[static_cast<std::size_t>(c)];
      const auto v = static_cast<Scalar>(in.v(at.batch, kv_head, at.kv_begin + key, c));
      sum_c = sum_c * factor + weight * v;
    }
    maximum = larger;
  }
  if (sum != 0) {
    for (Scalar& value : o) value /= sum;
  }
  return {o, maximum + std::log(sum)};
}

}  // namespace flashbound::testing
