// Elements of one row of O and lse that the first precision left in doubt.
//
// Keys are grouped by equal exact logits. With c_g the exact sum of a group's values, o is a
// quotient of two exponential sums (exponential_sum.hpp), relative to the largest exponent that is
// left when c_g = 0 are dropped. Where an enclosure holds a boundary r between two doubles, o - r
// has the sign of sum_g (c_g - n_g r) exp(s_g) and lse - r that of sum_g n_g exp(s_g) - exp(r).
#pragma once

#include "core/exact.hpp"
#include "core/exact/exponential_sum.hpp"

namespace flashbound {

struct Decision {
  std::optional<double> value;  // nothing: undecided at the precision cap
  int precision = 0;            // bits that it took
};

class RowDecider {
 public:
  // The row must have no undefined pair.
  RowDecider(const Head& head, Index query, const ExactOptions& options);

  Decision lse() const;
  // Column of O, whose visible values of positive weight are finite.
  Decision o(Index column) const;

 private:
  void add(ExactLogit logit, Index count);
  Coefficients sums_of_values(Index column) const;

  ExactOptions options_;
  ExactRow row_;
  std::vector<std::size_t> group_;  // of each of row_.keys
  Exponents exponents_;
  std::vector<Index> counts_;  // members of each group, the sink included
  RowMatrix values_;           // of row_.keys
};

}  // namespace flashbound
