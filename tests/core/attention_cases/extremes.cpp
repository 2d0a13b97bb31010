// Data at the edges of arithmetic: equal keys, one huge key, long sums, subnormal numbers.
#include "tests/core/attention_cases.hpp"
#include "tests/core/one_head.hpp"

#include <cmath>
#include <limits>

namespace flashbound::testing {
namespace {

using Cases = std::vector<AttentionCase>;

// One query of 1 and head_dim 1 with scale 1: key j is its own logit.
AttentionCase logits_case(Index keys, std::uint64_t seed) {
  Problem p = one_head({1, keys, 1, 1});
  p.softmax_scale = 1;
  AttentionCase c = normal_case(p, seed);
  fill(c.inputs.q, 1);
  return c;
}

Cases a38() {
  // 65536 values of 1000: their sum leaves fp16 at the 66th.
  AttentionCase c = logits_case(65536, 38);
  fill(c.inputs.v, 1000);
  c.stated.push_back({0, 0, 0, 0, 1000});
  return {c, normal_case(one_head({32, 1024, 80, 80}), 38)};
}

Cases a43() {
  AttentionCase c = logits_case(1000, 43);
  fill(c.inputs.k, 2.5);
  for (std::size_t j = 0; j < 1000; ++j) c.inputs.v.elements[j] = static_cast<double>(j);
  state_row(c, 0, 499.5, 2.5 + std::log(1000.0));
  return {c};
}

Cases a44() {
  AttentionCase c = logits_case(500, 44);
  c.inputs.k.elements.back() = 1e5;
  state_row(c, 0, c.inputs.v.elements.back(), 1e5);
  return {c};
}

Cases a45() {
  AttentionCase c = logits_case(100001, 45);
  fill(c.inputs.k, -5);
  c.inputs.k.elements[0] = 25;
  fill(c.inputs.v, 1);
  c.inputs.v.elements[0] = 0;
  // 10^5 weights of e^-30 against one of 1.
  const double others = 1e5 * std::exp(-30.0);
  state_row(c, 0, others / (1 + others), 25 + std::log1p(others));
  return {c};
}

Cases a46() {
  AttentionCase c = normal_case(one_head({3, 4, 2, 2}), 46);
  for (Tensor<double>* tensor : {&c.inputs.q, &c.inputs.k, &c.inputs.v}) fill(*tensor, -0.0);
  for (Index row = 0; row < 3; ++row) state_row(c, row, 0, std::log(4.0));
  return {c};
}

Cases a47() {
  // Subnormal in fp32, and in fp64. The mean of equal values is the value.
  Cases cases;
  for (const double small : {0x1p-140, 0x1p-1060}) {
    AttentionCase c = normal_case(one_head({3, 4, 2, 2}), 47);
    for (Tensor<double>* tensor : {&c.inputs.q, &c.inputs.k, &c.inputs.v}) fill(*tensor, small);
    for (Index row = 0; row < 3; ++row) state_row(c, row, small, std::log(4.0));
    cases.push_back(c);
  }
  return cases;
}

Cases a52() {
  AttentionCase c = normal_case(one_head({1, 131072, 1, 1}), 52);
  fill(c.inputs.k, 0);
  fill(c.inputs.v, 1);
  state_row(c, 0, 1, std::log(131072.0));
  return {c};
}

Cases a53() {
  Cases cases;
  for (const double step : {0.5, -0.5, 3.0, -3.0}) {
    AttentionCase c = logits_case(300, 53);
    for (std::size_t j = 0; j < 300; ++j) {
      c.inputs.k.elements[j] = step * static_cast<double>(j);
    }
    // A geometric series: sum = (1 - r^300) / (1 - r) with r = exp(-|step|).
    const double largest = step > 0 ? 299 * step : 0;
    const double ratio = std::exp(-std::abs(step));
    c.stated.push_back({0, 0, 0, kLse, largest - std::log1p(-ratio)});
    cases.push_back(c);
  }
  return cases;
}

}  // namespace

std::vector<CaseEntry> extreme_cases() {
  return {
      {"A38", "65536 large values are averaged and not summed away", a38},
      {"A43", "equal keys give the mean and lse = s + ln N", a43},
      {"A44", "one huge key at the end gives its value", a44},
      {"A45", "a hundred thousand small keys after a huge one still count", a45},
      {"A46", "negative zeros are zeros", a46},
      {"A47", "subnormal inputs are not flushed", a47},
      {"A52", "131072 equal values give that value", a52},
      {"A53", "maxima that rise at every key or never", a53},
  };
}

}  // namespace flashbound::testing
