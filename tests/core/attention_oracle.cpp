#include "tests/core/attention_oracle.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace flashbound::testing {
namespace {

struct Lengths {
  Index q_begin, q_end, kv_begin, kv_end;
};

// The packed sequence that holds `row`, or everything.
Lengths lengths_around(const Problem& p, Index row) {
  for (std::size_t s = 0; s + 1 < p.cu_seqlens_q.size(); ++s) {
    if (row >= p.cu_seqlens_q[s] && row < p.cu_seqlens_q[s + 1]) {
      return {p.cu_seqlens_q[s], p.cu_seqlens_q[s + 1], p.cu_seqlens_kv[s], p.cu_seqlens_kv[s + 1]};
    }
  }
  return {0, p.seqlen_q, 0, p.seqlen_kv};
}

bool sees(const Problem& p, Index i, Index j, Index diagonal) {
  if (p.window_left != -1 && j < diagonal - p.window_left) return false;
  if (p.window_right != -1 && j > diagonal + p.window_right) return false;
  if (!p.block_mask) return true;
  const BlockMask& mask = *p.block_mask;
  const Index cell = i / mask.block_q * mask.cols + j / mask.block_kv;
  return mask.cells[static_cast<std::size_t>(cell)] != 0;
}

}  // namespace

VisibleLogits visible_logits(const Problem& p, const Inputs& inputs, Index batch, Index head,
                             Index row) {
  const Lengths at = lengths_around(p, row);
  const Index kv_head = head / (p.num_heads_q / p.num_heads_kv);
  const Index i = row - at.q_begin;
  const Index diagonal = i + (at.kv_end - at.kv_begin) - (at.q_end - at.q_begin);
  const auto h = static_cast<std::size_t>(head);
  const long double scale =
      p.softmax_scale ? *p.softmax_scale : 1.0 / std::sqrt(static_cast<double>(p.head_dim));
  VisibleLogits result;
  for (Index j = 0; j < at.kv_end - at.kv_begin; ++j) {
    if (!sees(p, i, j, diagonal)) continue;
    long double logit = 0;
    for (Index c = 0; c < p.head_dim; ++c) {
      logit += static_cast<long double>(inputs.q(batch, head, row, c)) *
               static_cast<long double>(inputs.k(batch, kv_head, at.kv_begin + j, c));
    }
    logit *= scale;
    const long double cap = p.softcap;
    if (cap > 0) logit = cap * std::tanh(logit / cap);
    if (!p.alibi_slopes.empty()) {
      logit -= static_cast<long double>(p.alibi_slopes[h]) *
               static_cast<long double>(std::abs(diagonal - j));
    }
    result.keys.push_back(at.kv_begin + j);
    result.logits.push_back(logit);
  }
  return result;
}

ExactAttention exact_attention(const Problem& p, const Inputs& inputs) {
  ExactAttention result{Tensor<long double>({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}),
                        Tensor<long double>({p.batch, p.num_heads_q, p.seqlen_q, 1})};
  const auto o = result.o.view();
  const auto lse = result.lse.view();
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      const Index kv_head = h / (p.num_heads_q / p.num_heads_kv);
      for (Index row = 0; row < p.seqlen_q; ++row) {
        const VisibleLogits seen = visible_logits(p, inputs, b, h, row);
        long double maximum = -std::numeric_limits<long double>::infinity();
        if (!p.sink.empty()) maximum = p.sink[static_cast<std::size_t>(h)];
        for (const long double logit : seen.logits) {
          if (logit > maximum || std::isnan(logit)) maximum = logit;
          if (std::isnan(maximum)) break;
        }
        long double sum = 0;
        if (!p.sink.empty()) {
          sum = std::exp(static_cast<long double>(p.sink[static_cast<std::size_t>(h)]) - maximum);
        }
        for (std::size_t n = 0; n < seen.keys.size(); ++n) {
          const long double weight = std::exp(seen.logits[n] - maximum);
          sum += weight;
          for (Index c = 0; c < p.head_dim_v; ++c) {
            o(b, h, row, c) +=
                weight * static_cast<long double>(inputs.v(b, kv_head, seen.keys[n], c));
          }
        }
        if (!seen.keys.empty()) {
          for (Index c = 0; c < p.head_dim_v; ++c) o(b, h, row, c) /= sum;
        }
        lse(b, h, row, 0) = maximum + std::log(sum);
      }
    }
  }
  return result;
}

}  // namespace flashbound::testing
