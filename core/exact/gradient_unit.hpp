// One key head of one sequence with the query heads that read it: what gradients are summed over.
#pragma once

#include "core/exact.hpp"
#include "core/exact/ball.hpp"

#include <optional>
#include <tuple>
#include <vector>

namespace flashbound {

// Views the problem and the tensors: keep them alive.
struct GradientUnit {
  const Problem* problem = nullptr;
  TensorView<const double> grad_o;
  Sequence at{};
  Index key_head = 0;
  std::vector<Head> heads;  // query heads, in order

  Index query_head(std::size_t n) const {
    return key_head * q_heads_per_kv_head(*problem) + static_cast<Index>(n);
  }
  Index row_count() const { return static_cast<Index>(heads.size()) * at.seqlen_q; }
  // dO of queries of the n-th query head.
  RowMatrix grad_rows(std::size_t n, Interval rows) const;
};
GradientUnit gradient_unit(const Problem& problem, const Inputs& inputs,
                           const TensorView<const double>& grad_o, const Sequence& at,
                           Index key_head);

// What dS needs to know of a row: P = exp(logit - shift) x inverse_sum, dL = P (dP - delta).
struct RowFact {
  Ball shift, inverse_sum, delta;
};
using RowFacts = std::vector<RowFact>;  // query head by query head

// The facts of the rows of block i of the n-th query head, as `schedule` cuts it, and with
// `wants_grad` their dQ (else an empty matrix). Facts of other rows are left alone.
BallMatrix query_gradients(const GradientUnit& unit, std::size_t n, const Schedule& schedule,
                           Index i, bool wants_grad, slong precision, RowFacts& facts);

// dK and dV of block j of keys, as `schedule` cuts them, from facts of the same precision or more.
struct KeyGradients {
  BallMatrix k, v;
};
KeyGradients key_gradients(const GradientUnit& unit, const Schedule& schedule, Index j,
                           slong precision, const RowFacts& facts);

// Gradients that numbers which are not finite make NaN.
struct NotFinite {
  std::vector<bool> q;               // rows, query head by query head
  std::vector<bool> k;               // keys
  std::vector<std::vector<bool>> v;  // keys, columns
};
NotFinite not_finite(const GradientUnit& unit);

// The element of a gradient: a row of dQ (query head by query head), or a key.
struct Element {
  enum class Of { q, k, v };
  Of of = Of::q;
  Index row = 0;
  Index col = 0;
  friend bool operator<(const Element& a, const Element& b) {
    return std::tie(a.of, a.row, a.col) < std::tie(b.of, b.row, b.col);
  }
};
// The values of those elements that rational arithmetic decides; nothing for the others.
std::vector<std::optional<double>> rational_gradients(const GradientUnit& unit,
                                                      const std::vector<Element>& elements);

}  // namespace flashbound
