// From products to logits: scale, softcap, ALiBi, sink, values that are not finite.
#include "tests/core/attention_cases.hpp"
#include "tests/core/one_head.hpp"

#include <cmath>
#include <limits>

namespace flashbound::testing {
namespace {

using Cases = std::vector<AttentionCase>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Cases a3() {
  AttentionCase c = normal_case(one_head({1, 1, 64, 64}), 3);
  for (Tensor<double>* tensor : {&c.inputs.q, &c.inputs.k, &c.inputs.v}) fill(*tensor, 133120);
  state_row(c, 0, 133120, 64.0 * 133120 * 133120 / 8);
  return {c};
}

Cases a12() {
  Problem p = one_head({256, 256, 128, 16});
  p.window_right = 0;
  AttentionCase c = normal_case(p, 12);
  for (Tensor<double>* tensor : {&c.inputs.q, &c.inputs.k, &c.inputs.v}) {
    for (double& element : tensor->elements) element *= 3;
  }
  return {c};
}

Cases a26() {
  Problem ragged = one_head({128, 217, 32, 16});
  ragged.cu_seqlens_q = {0, 50, 128};
  ragged.cu_seqlens_kv = {0, 117, 217};
  ragged.softcap = 15;
  Problem causal = one_head({64, 64, 16, 16});
  causal.batch = 2;
  causal.num_heads_q = causal.num_heads_kv = 4;
  causal.window_right = 0;
  causal.softcap = 10;
  // One key far above the cap and one far below: logits of exactly c and -c.
  AttentionCase saturated = normal_case(one_head({1, 2, 1, 1}), 26);
  saturated.problem.softmax_scale = 1;
  saturated.problem.softcap = 2;
  saturated.inputs.q.elements = {1};
  saturated.inputs.k.elements = {1e6, -1e6};
  saturated.inputs.v.elements = {1, 0};
  state_row(saturated, 0, 1 / (1 + std::exp(-4.0)), 2 + std::log1p(std::exp(-4.0)));
  return {normal_case(ragged, 26), normal_case(causal, 26), saturated};
}

Cases a31() {
  Cases cases;
  for (const Index heads : {12, 40}) {
    Problem p = one_head({5, 9, 4, 2});
    p.num_heads_q = p.num_heads_kv = heads;
    p.alibi_slopes = alibi_slopes(heads);
    cases.push_back(normal_case(p, 31));
  }
  return cases;
}

Cases a37() {
  AttentionCase c = normal_case(one_head({3, 4, 2, 2}), 37);
  c.inputs.q.view()(0, 0, 1, 0) = kNan;
  state_row(c, 1, kNan, kNan);
  return {c};
}

Cases s_alibi() {
  // All products 0, so that logits are the biases: -slope |i + d - j| with d = 2.
  AttentionCase c = normal_case(one_head({1, 3, 1, 1}), 110);
  c.problem.alibi_slopes = {std::log(2.0)};
  fill(c.inputs.q, 0);
  c.inputs.v.elements = {7, 14, 28};  // weights 1/4, 1/2, 1
  state_row(c, 0, (7.0 / 4 + 14.0 / 2 + 28) / 1.75, std::log(1.75));
  // Beside a causal mask, a distance on the other side of the diagonal would be visible.
  Problem past_diagonal = one_head({9, 4, 2, 2});
  past_diagonal.alibi_slopes = {0.5};
  past_diagonal.window_right = 2;
  return {c, normal_case(past_diagonal, 111)};
}

Cases s_sink() {
  Cases cases;
  for (const double sink : {-1000.0, 0.0, 1000.0}) {
    AttentionCase c = normal_case(one_head({1, 1, 1, 1}), 112);
    c.problem.softmax_scale = 1;
    c.problem.sink = {sink};
    fill(c.inputs.q, 0);  // a logit of 0
    fill(c.inputs.v, 6);
    const double o = 6 / (1 + std::exp(sink));
    state_row(c, 0, o, sink > 0 ? sink : std::log1p(std::exp(sink)));
    cases.push_back(c);
  }
  // Rows without keys: nothing but the sink.
  AttentionCase blind = normal_case(one_head({4, 2, 2, 2}), 113);
  blind.problem.window_right = 0;
  blind.problem.sink = {-1.5};
  state_row(blind, 0, 0, -1.5);
  state_row(blind, 1, 0, -1.5);
  cases.push_back(blind);
  Problem per_head = one_head({3, 5, 2, 2});
  per_head.num_heads_q = 4;
  per_head.num_heads_kv = 2;
  per_head.sink = {-2, 0, 1, 3};
  cases.push_back(normal_case(per_head, 114));
  return cases;
}

Cases s_scale() {
  Cases cases;
  for (const double scale : {0.0, -1.0, 1e-30, 30.0, -30.0, 1e6}) {
    Problem p = one_head({4, 20, 5, 3});
    p.softmax_scale = scale;
    AttentionCase c = normal_case(p, 115);
    if (scale == 0) {
      for (Index row = 0; row < 4; ++row) c.stated.push_back({0, 0, row, kLse, std::log(20.0)});
    }
    cases.push_back(c);
  }
  // The least key wins under a negative scale.
  AttentionCase least = normal_case(one_head({1, 3, 1, 1}), 116);
  least.problem.softmax_scale = -1;
  least.inputs.q.elements = {1};
  least.inputs.k.elements = {0, -2000, 2000};
  least.inputs.v.elements = {1, 2, 3};
  state_row(least, 0, 2, 2000);
  cases.push_back(least);
  return cases;
}

Cases s_lse() {
  // Natural logarithm: two equal keys of logit 3.
  AttentionCase c = normal_case(one_head({1, 2, 1, 1}), 117);
  c.problem.softmax_scale = 1;
  fill(c.inputs.q, 1);
  fill(c.inputs.k, 3);
  c.inputs.v.elements = {1, 2};
  state_row(c, 0, 1.5, 3 + std::log(2.0));
  return {c};
}

Cases a21() {
  Problem p = one_head({3, 0, 4, 2});
  p.batch = 2;
  AttentionCase c = normal_case(p, 21);
  for (Index row = 0; row < 3; ++row) state_row(c, row, 0, -kInfinity);
  return {c};
}

}  // namespace

std::vector<CaseEntry> score_cases() {
  return {
      {"A3", "one huge logit gives its value", a3},
      {"A12", "inputs of three standard deviations stay finite", a12},
      {"A21", "no keys give 0 and -inf", a21},
      {"A22", "lse of no keys is minus and not plus infinity", a21},
      {"A26", "softcap c is c tanh(s/c)", a26},
      {"A31", "ALiBi with 12 and 40 heads", a31},
      {"A37", "a NaN logit stays a NaN", a37},
      {"S-alibi", "the bias is -slope |i + d - j| on both sides of the diagonal", s_alibi},
      {"S-sink", "a sink joins the denominator and lse alone", s_sink},
      {"S-scale", "any finite scale is legal", s_scale},
      {"S-lse", "lse is a natural logarithm", s_lse},
  };
}

}  // namespace flashbound::testing
