// Which keys a query sees: masks, windows, alignment, rows that see nothing, NaN that is hidden.
#include "tests/core/attention_cases.hpp"
#include "tests/core/one_head.hpp"

#include <limits>

namespace flashbound::testing {
namespace {

using Cases = std::vector<AttentionCase>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Problem causal(const Shape& shape) {
  Problem problem = one_head(shape);
  problem.window_right = 0;
  return problem;
}

// Query i sees exactly the keys whose cell is set.
Problem cellwise(const Shape& shape, const std::vector<std::uint8_t>& cells) {
  Problem problem = one_head(shape);
  problem.block_mask = BlockMask{1, 1, shape.seqlen_q, shape.seqlen_kv, cells};
  return problem;
}

Cases a1() {
  std::vector<std::uint8_t> cells(64, 1);
  for (std::size_t pair = 32; pair < 64; ++pair) cells[pair] = 0;
  AttentionCase c = normal_case(cellwise({8, 8, 8, 8}, cells), 1);
  for (Index row = 4; row < 8; ++row) state_row(c, row, 0, -kInfinity);
  return {c};
}

Cases a2() {
  AttentionCase c = normal_case(cellwise({2, 2, 4, 4}, {1, 0, 1, 0}), 1);
  for (std::size_t i = 0; i < 8; ++i) {
    c.inputs.q.elements[i] = c.inputs.k.elements[i] = c.inputs.v.elements[i] =
        static_cast<double>(i);
  }
  c.inputs.k.view()(0, 0, 1, 0) = kNan;
  for (Index row = 0; row < 2; ++row) {
    for (Index col = 0; col < 4; ++col) {
      c.stated.push_back({0, 0, row, col, static_cast<double>(col)});
    }
  }
  return {c};
}

Cases a10() {
  const Index segment = 75;  // as 600 is, no multiple of a block
  Problem p = one_head({2 * segment, 2 * segment, 80, 80});
  p.block_mask = BlockMask{segment, segment, 2, 2, {1, 0, 0, 1}};
  AttentionCase c = normal_case(p, 10);
  for (Index s = 0; s < 2; ++s) {
    const Interval rows{s * segment, (s + 1) * segment};
    c.equal_to.push_back(cut_out(c, rows, rows));
  }
  return {c};
}

Cases a14() {
  const Index n = 192;
  AttentionCase c = normal_case(causal({n, n, 8, 8}), 14);
  for (const Index left : {n - 1, n}) {
    Problem window = c.problem;
    window.window_left = left;
    c.equal_to.push_back({window, c.inputs, 0});
  }
  return {c};
}

Cases a25() {
  Cases cases{normal_case(causal({3, 128, 128, 128}), 25),
              normal_case(causal({2048, 1024, 2, 1}), 26)};
  AttentionCase& tall = cases.back();
  state_row(tall, 0, 0, -kInfinity);
  state_row(tall, 1023, 0, -kInfinity);
  tall.stated.push_back({0, 0, 1024, 0, tall.inputs.v.elements[0]});
  return cases;
}

Cases a30() {
  AttentionCase c = normal_case(causal({5, 3, 4, 4}), 30);
  state_row(c, 0, 0, -kInfinity);
  state_row(c, 1, 0, -kInfinity);
  // A window so far left of the last keys that later parts of them are empty.
  Problem narrow = one_head({2, 300, 4, 4});
  narrow.window_left = 299;
  narrow.window_right = 0;
  narrow.block_mask = BlockMask{2, 100, 1, 3, {1, 0, 0}};
  AttentionCase empty_parts = normal_case(narrow, 31);
  empty_parts.equal_to.push_back(cut_out(empty_parts, {0, 2}, {0, 100}));
  empty_parts.equal_to.back().problem.window_left = kUnbounded;
  empty_parts.equal_to.back().problem.window_right = kUnbounded;
  return {c, empty_parts};
}

Cases a33() {
  Problem p = causal({64, 64, 16, 16});
  p.batch = 2;
  p.num_heads_q = p.num_heads_kv = 8;
  return {normal_case(p, 33)};
}

Cases a34() {
  AttentionCase c = normal_case(one_head({4, 9, 1, 1}), 34);
  c.problem.softmax_scale = 1;
  fill(c.inputs.q, 1);
  fill(c.inputs.k, 0);
  c.inputs.k.elements[8] = 1000;  // the last key alone counts, for the first query too
  for (Index row = 0; row < 4; ++row) state_row(c, row, c.inputs.v.elements[8], 1000);
  return {c};
}

// A window of W tokens, as other libraries count them, is window_left = W - 1.
Cases a36() {
  Cases cases;
  for (const Index tokens : {1, 4}) {
    Problem p = causal({10, 10, 1, 1});
    p.window_left = tokens - 1;
    AttentionCase c = normal_case(p, 36);
    fill(c.inputs.q, 0);  // all weights equal: the mean of the window
    for (Index j = 0; j < 10; ++j) {
      c.inputs.v.elements[static_cast<std::size_t>(j)] = static_cast<double>(j);
    }
    for (Index i = tokens - 1; i < 10; ++i) {
      const double mean = static_cast<double>(i) - static_cast<double>(tokens - 1) / 2;
      c.stated.push_back({0, 0, i, 0, mean});
    }
    cases.push_back(c);
  }
  return cases;
}

Cases a39() {
  AttentionCase c = normal_case(causal({2, 2, 1, 1}), 39);
  c.problem.softmax_scale = 1;
  c.inputs.q.elements = {-20000, 0};
  c.inputs.k.elements = {1, 0};
  c.inputs.v.elements = {1, 100};
  state_row(c, 0, 1, -20000);
  return {c};
}

Cases s_window() {
  Cases cases;
  for (const auto& [seqlen_q, seqlen_kv] :
       {std::pair<Index, Index>{7, 12}, {12, 7}, {9, 9}, {1, 6}, {6, 1}}) {
    for (const Index left : {-1, 0, 2, 20}) {
      for (const Index right : {-1, 0, 2, 20}) {
        Problem p = one_head({seqlen_q, seqlen_kv, 3, 2});
        p.window_left = left;
        p.window_right = right;
        cases.push_back(normal_case(p, 100));
      }
    }
  }
  return cases;
}

Cases s_block_mask() {
  Problem p = causal({7, 9, 3, 2});
  p.block_mask = BlockMask{2, 4, 4, 3, {1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1}};
  AttentionCase c = normal_case(p, 101);
  state_row(c, 2, 0, -kInfinity);
  state_row(c, 3, 0, -kInfinity);
  return {c};
}

Cases s_nan() {
  Cases cases;
  for (Index key = 0; key < 3; ++key) {
    AttentionCase c = normal_case(causal({3, 3, 2, 2}), 102);
    c.inputs.v.view()(0, 0, key, 1) = kNan;
    for (Index row = key; row < 3; ++row) c.stated.push_back({0, 0, row, 1, kNan});
    cases.push_back(c);
  }
  return cases;
}

}  // namespace

std::vector<CaseEntry> mask_cases() {
  return {
      {"A1", "rows that are masked whole give 0 and -inf", a1},
      {"A2", "a NaN in a masked key does not leak", a2},
      {"A10", "a block-diagonal mask equals separate runs", a10},
      {"A14", "windows as long as the sequence equal causal", a14},
      {"A25", "causal alignment is bottom-right", a25},
      {"A30", "queries without keys and empty parts are neutral", a30},
      {"A33", "causal output is not zero", a33},
      {"A34", "without a causal mask early queries see late keys", a34},
      {"A36", "a window of W tokens is window_left = W - 1", a36},
      {"A39", "a mask is minus infinity and not a large number", a39},
      {"S-window", "windows are inclusive and aligned bottom-right", s_window},
      {"S-block-mask", "a block mask and a window must both allow a pair", s_block_mask},
      {"S-nan", "a NaN reaches the rows and columns that use it", s_nan},
  };
}

}  // namespace flashbound::testing
