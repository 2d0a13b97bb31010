// Sizes at which indices overflow or blocks end: many keys, many heads, every head_dim.
#include "tests/core/attention_cases.hpp"
#include "tests/core/one_head.hpp"

#include <limits>

namespace flashbound::testing {
namespace {

using Cases = std::vector<AttentionCase>;

Cases a4() {
  // 65537 keys and 65537 queries, each beside few of the other.
  Problem keys = one_head({3, 65537, 4, 2});
  keys.window_right = 0;
  Problem queries = one_head({65537, 2, 1, 1});
  queries.window_right = 0;
  AttentionCase tall = normal_case(queries, 4);
  // All but the last two queries come before the first key.
  tall.stated.push_back({0, 0, 65534, 0, 0});
  tall.stated.push_back({0, 0, 65535, 0, tall.inputs.v.elements[0]});
  return {normal_case(keys, 4), tall};
}

Cases a5() { return {normal_case(one_head({2, 49999, 2, 2}), 5)}; }

Cases a6() {
  Problem p = one_head({1, 2, 1, 1});
  p.batch = 65537;
  return {normal_case(p, 6)};
}

Cases a7() {
  Problem p = one_head({1, 8192, 1, 1});
  p.num_heads_q = p.num_heads_kv = 32;
  p.alibi_slopes = alibi_slopes(32);
  return {normal_case(p, 7)};
}

Cases a19() {
  Problem p = one_head({3, 3, 2, 2});
  p.batch = 0;
  Problem no_queries = one_head({0, 3, 2, 2});
  return {normal_case(p, 19), normal_case(no_queries, 19)};
}

Cases a29() {
  Cases cases;
  for (const Index head_dim : {72, 104}) {
    cases.push_back(normal_case(one_head({9, 33, head_dim, head_dim}), 29));
  }
  return cases;
}

Cases a48() {
  AttentionCase c = normal_case(one_head({5, 1, 4, 1}), 48);
  for (Index row = 0; row < 5; ++row) {
    c.stated.push_back({0, 0, row, 0, c.inputs.v.elements[0]});
  }
  return {c};
}

Cases a49() {
  Problem p = one_head({1, 100, 16, 16});
  p.window_right = 0;
  AttentionCase c = normal_case(p, 49);
  // One query is the last one: a causal mask hides nothing.
  Problem full = p;
  full.window_right = kUnbounded;
  c.equal_to.push_back({full, c.inputs, 0});
  return {c};
}

Cases a50() {
  Cases cases;
  for (const Index block : {16, 64}) {
    for (const Index off : {-1, 0, 1}) {
      Problem p = one_head({block + off, 2 * block + off, 8, 8});
      cases.push_back(normal_case(p, 50));
      p.window_right = 0;
      cases.push_back(normal_case(p, 51));
    }
  }
  return cases;
}

Cases a51() {
  Cases cases;
  for (const Index head_dim : {1, 7, 17, 72, 96, 192, 256, 576}) {
    cases.push_back(normal_case(one_head({3, 20, head_dim, head_dim}), 51));
    cases.push_back(normal_case(one_head({3, 20, head_dim, 5}), 52));
    cases.push_back(normal_case(one_head({3, 20, 5, head_dim}), 53));
  }
  return cases;
}

}  // namespace

std::vector<CaseEntry> size_cases() {
  return {
      {"A4", "sequences beyond 16-bit indices", a4},
      {"A5", "49999 keys", a5},
      {"A6", "a batch beyond 65535", a6},
      {"A7", "ALiBi over 32 heads of 8192 keys", a7},
      {"A19", "no batch and no queries give an empty output", a19},
      {"A29", "head_dim 72 and 104", a29},
      {"A48", "one key gives its value", a48},
      {"A49", "one query sees all keys under a causal mask", a49},
      {"A50", "lengths around block edges", a50},
      {"A51", "head_dim of every kind and unlike head_dim_v", a51},
  };
}

}  // namespace flashbound::testing
