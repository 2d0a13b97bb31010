// Packed sequences and grouped heads: which rows and which heads belong together.
#include "tests/core/attention_cases.hpp"
#include "tests/core/one_head.hpp"

#include <limits>

namespace flashbound::testing {
namespace {

using Cases = std::vector<AttentionCase>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Problem packed(const std::vector<Index>& cu_q, const std::vector<Index>& cu_kv, Index head_dim) {
  Problem problem = one_head({cu_q.back(), cu_kv.back(), head_dim, head_dim});
  problem.cu_seqlens_q = cu_q;
  problem.cu_seqlens_kv = cu_kv;
  return problem;
}

void scale_all(OwnedInputs& inputs, double factor) {
  for (Tensor<double>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (double& element : tensor->elements) element *= factor;
  }
}

Cases a11() {
  Problem p = packed({0, 76, 110, 256}, {0, 1, 2, 3}, 32);
  p.window_right = 0;
  AttentionCase c = normal_case(p, 11);
  scale_all(c.inputs, 3);
  // One key a sequence, which only the sequence's last query sees.
  for (const Index row : {0, 74, 76, 108, 110, 254}) state_row(c, row, 0, -kInfinity);
  Index key = 0;
  for (const Index row : {75, 109, 255}) {
    for (Index col = 0; col < 32; ++col) {
      c.stated.push_back({0, 0, row, col, c.inputs.v.view()(0, 0, key, col)});
    }
    ++key;
  }
  equal_separately(c);
  return {c};
}

Cases a13() {
  AttentionCase c = normal_case(packed({0, 0, 1023}, {0, 1, 2045}, 2), 13);
  equal_separately(c);
  return {c};
}

Cases a18() {
  Problem p = packed({0, 0, 1, 1, 2}, {0, 2, 5, 5, 9}, 4);
  p.num_heads_q = 9;
  p.num_heads_kv = 3;
  AttentionCase c = normal_case(p, 18);
  equal_separately(c);
  return {c};
}

Cases a20() {
  // Lengths are an eighth of the report's.
  Problem p = packed({0, 0, 151, 256, 256}, {0, 317, 535, 640, 1024}, 16);
  p.num_heads_q = 4;
  AttentionCase c = normal_case(p, 20);
  equal_separately(c);
  return {c};
}

Cases a23() {
  Problem p = one_head({8, 8, 8, 1});
  p.num_heads_q = 64;
  p.num_heads_kv = 8;
  AttentionCase c = normal_case(p, 23);
  for (Index h = 0; h < 8; ++h) {
    for (Index j = 0; j < 8; ++j) c.inputs.v.view()(0, h, j, 0) = static_cast<double>(h);
  }
  for (Index h = 0; h < 64; ++h) {
    for (Index row = 0; row < 8; ++row) {
      c.stated.push_back({0, h, row, 0, static_cast<double>(h / 8)});
    }
  }
  return {c};
}

Cases a24() {
  Problem p = packed({0, 3, 10, 11}, {0, 9, 14, 30}, 8);
  p.num_heads_q = p.num_heads_kv = 4;
  p.alibi_slopes = alibi_slopes(4);
  p.window_right = 0;
  AttentionCase c = normal_case(p, 24);
  equal_separately(c);
  return {c};
}

// Padding between sequences is packed as sequences of its own, and filled with NaN.
Cases a32() {
  const std::vector<Index> lengths{9, 8, 8, 12, 8, 12};
  const std::vector<Index> padded{0, 12, 20, 28, 40, 48, 60};
  std::vector<Index> cu{0};
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    cu.push_back(padded[s] + lengths[s]);
    cu.push_back(padded[s + 1]);
  }
  AttentionCase c = normal_case(packed(cu, cu, 4), 32);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    for (Index row = padded[s] + lengths[s]; row < padded[s + 1]; ++row) {
      for (Tensor<double>* tensor : {&c.inputs.q, &c.inputs.k, &c.inputs.v}) {
        for (Index col = 0; col < 4; ++col) tensor->view()(0, 0, row, col) = kNan;
      }
    }
    const Interval rows{padded[s], padded[s] + lengths[s]};
    c.equal_to.push_back(cut_out(c, rows, rows));
  }
  return {c};
}

Cases a41() {
  Problem p = one_head({32, 32, 128, 128});
  p.num_heads_q = 8;
  p.num_heads_kv = 2;
  return {normal_case(p, 41)};
}

Cases a9() {
  Problem p = one_head({1, 512, 64, 8});
  p.batch = 2;
  p.num_heads_q = p.num_heads_kv = 4;
  return {normal_case(p, 9)};
}

}  // namespace

std::vector<CaseEntry> packing_cases() {
  return {
      {"A9", "every sequence of a batch is written", a9},
      {"A11", "packed queries without keys give 0 and -inf", a11},
      {"A13", "a packed sequence without queries is passed over", a13},
      {"A18", "packed lengths of 0 and 1 with grouped heads", a18},
      {"A20", "keys without queries between packed sequences", a20},
      {"A23", "query head h reads key head h / ratio", a23},
      {"A24", "ALiBi distances are the same packed and alone", a24},
      {"A32", "padding between packed sequences is ignored", a32},
      {"A41", "grouped heads with head_dim 128", a41},
  };
}

}  // namespace flashbound::testing
