// Gradients that rational arithmetic decides: zeros that structure forces, and elements that only
// rows with P = 1/n reach.
#include "core/exact/gradient_unit.hpp"
#include "core/exact/logits.hpp"
#include "core/exact/rounding.hpp"

#include <algorithm>
#include <utility>

namespace flashbound {
namespace {

// One row (one query of one query head), as far as it is simple.
struct SimpleRow {
  std::vector<Index> keys;    // that it sees
  bool uniform = false;       // all logits are equal, the sink's too: P = 1/members
  bool no_scores = false;     // dS = 0
  bool unit_slope = false;    // no softcap, or one at a logit of 0: dL/dS is the scale
  Index members = 0;          // keys and the sink
  std::vector<Dyadic> grads;  // dP of the keys of a uniform row
  Dyadic grad_sum;
};

std::vector<Index> visible_keys(const Schedule& schedule, Index query) {
  std::vector<Index> keys;
  const Interval band = schedule.band().keys(query);
  for (Index j = band.begin; j < band.end; ++j) {
    if (schedule.visible(query, j)) keys.push_back(j);
  }
  return keys;
}

// Whether dS is zero: dP is the same for all members of the softmax, the sink's being zero.
bool all_weights_alike(const SimpleRow& row, const RowMatrix& grad_o, const RowMatrix& v,
                       bool sink) {
  Dyadic expected;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    const Dyadic grad = exact_product(grad_o.row(0), v.row(row.keys[n] - row.keys.front()));
    if (n == 0 && !sink) expected = grad;
    if (!(grad == expected)) return false;
  }
  return true;
}

bool has_unit_slope(const Head& head, Index query) {
  if (head.problem().softcap == 0) return true;
  const ExactRow row = exact_row(head, query);
  return std::all_of(row.logits.begin(), row.logits.end(),
                     [](const ExactLogit& logit) { return logit.capped.is_zero(); });
}

// All rows of a unit are looked at alike, by number: query head by query head.
SimpleRow simple_row(const GradientUnit& unit, Index row) {
  const auto n = static_cast<std::size_t>(row / unit.at.seqlen_q);
  const Index query = row % unit.at.seqlen_q;
  const Head& head = unit.heads[n];
  SimpleRow result;
  result.keys = visible_keys(head.schedule(), query);
  if (result.keys.empty()) return result;
  const RowMatrix v = head.values({result.keys.front(), result.keys.back() + 1});
  const RowMatrix grad_o = unit.grad_rows(n, {query, query + 1});
  result.no_scores = all_weights_alike(result, grad_o, v, head.sink().has_value());
  result.uniform = has_equal_logits(head, query);
  result.members = static_cast<Index>(result.keys.size()) + (head.sink() ? 1 : 0);
  if (!result.uniform) return result;
  result.unit_slope = has_unit_slope(head, query);
  for (const Index key : result.keys) {
    result.grads.push_back(exact_product(grad_o.row(0), v.row(key - result.keys.front())));
    result.grad_sum += result.grads.back();
  }
  return result;
}

// members^2 dL of the n-th key of a uniform row.
Dyadic scaled_logit_gradient(const SimpleRow& row, std::size_t n) {
  Dyadic grad = row.grads[n];
  grad *= Dyadic(static_cast<double>(row.members));
  grad -= row.grad_sum;
  return grad;
}

// Where only keys' logits share a row, without a softcap, its dL add up to zero: a column of K that
// is the same for all of them gives zero.
bool same_for_all_keys(const GradientUnit& unit, const SimpleRow& row, const RowMatrix& k,
                       Index col) {
  if (unit.problem->softcap > 0 || !unit.problem->sink.empty()) return false;
  return std::all_of(row.keys.begin(), row.keys.end(),
                     [&](Index key) { return k(key - row.keys.front(), col) == k(0, col); });
}

std::optional<double> query_gradient(const GradientUnit& unit, const SimpleRow& row,
                                     const RowMatrix& k, Index col) {
  if (row.keys.empty() || row.no_scores || same_for_all_keys(unit, row, k, col)) return 0.0;
  if (!row.uniform) return std::nullopt;
  Dyadic sum;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    sum.add_product(scaled_logit_gradient(row, n), Dyadic(k(row.keys[n] - row.keys.front(), col)));
  }
  sum *= Dyadic(softmax_scale(*unit.problem));
  if (!row.unit_slope && !sum.is_zero()) return std::nullopt;  // times a transcendental number
  Rational value;
  value.add_quotient(sum, row.members * row.members);
  return round_rational(value);
}

// A gradient of a key, row by row.
struct KeySum {
  Element element;
  Rational value;
  bool rational = true;
};

void add_row(const GradientUnit& unit, const SimpleRow& row, const RowMatrix& q,
             const RowMatrix& grad_o, KeySum& sum) {
  const Element& element = sum.element;
  const auto found = std::lower_bound(row.keys.begin(), row.keys.end(), element.row);
  if (found == row.keys.end() || *found != element.row) return;
  const bool of_v = element.of == Element::Of::v;
  const double factor = of_v ? grad_o(0, element.col) : q(0, element.col);
  if (factor == 0 || (!of_v && row.no_scores)) return;
  if (!row.uniform || !(of_v || row.unit_slope)) {
    sum.rational = false;
  } else if (of_v) {
    sum.value.add_quotient(Dyadic(factor), row.members);
  } else {
    Dyadic share = scaled_logit_gradient(row, static_cast<std::size_t>(found - row.keys.begin()));
    share *= Dyadic(factor);
    share *= Dyadic(softmax_scale(*unit.problem));
    sum.value.add_quotient(share, row.members * row.members);
  }
}

std::vector<KeySum> key_sums(const GradientUnit& unit, const std::vector<Element>& elements) {
  std::vector<KeySum> sums;
  for (const Element& element : elements) {
    if (element.of != Element::Of::q) sums.push_back({element, {}, true});
  }
  const auto undecided = [](const KeySum& sum) { return sum.rational; };
  for (Index row = 0; row < unit.row_count(); ++row) {
    if (std::none_of(sums.begin(), sums.end(), undecided)) break;
    const auto n = static_cast<std::size_t>(row / unit.at.seqlen_q);
    const Index query = row % unit.at.seqlen_q;
    const SimpleRow simple = simple_row(unit, row);
    const RowMatrix q = unit.heads[n].queries({query, query + 1});
    const RowMatrix grad_o = unit.grad_rows(n, {query, query + 1});
    for (KeySum& sum : sums) {
      if (sum.rational) add_row(unit, simple, q, grad_o, sum);
    }
  }
  return sums;
}

}  // namespace

std::vector<std::optional<double>> rational_gradients(const GradientUnit& unit,
                                                      const std::vector<Element>& elements) {
  std::vector<std::optional<double>> results;
  const std::vector<KeySum> sums = key_sums(unit, elements);
  auto next_sum = sums.begin();
  Index last_row = -1;
  SimpleRow row;
  RowMatrix k;
  for (const Element& element : elements) {
    if (element.of != Element::Of::q) {
      const KeySum& sum = *next_sum++;
      results.push_back(sum.rational ? std::optional(round_rational(sum.value)) : std::nullopt);
      continue;
    }
    if (element.row != last_row) {
      last_row = element.row;
      row = simple_row(unit, last_row);
      if (!row.keys.empty()) {
        k = unit.heads.front().keys({row.keys.front(), row.keys.back() + 1});
      }
    }
    results.push_back(query_gradient(unit, row, k, element.col));
  }
  return results;
}

}  // namespace flashbound
