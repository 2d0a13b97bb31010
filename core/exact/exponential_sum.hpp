// Signs of sums of exponentials: sum_g c_g exp(s_g) with exact coefficients and distinct exponents.
//
// By the theorem of Lindemann and Weierstrass, exponentials of distinct algebraic numbers are
// linearly independent over the algebraic numbers: such a sum is zero only where all c_g are, so
// that enough precision always finds its sign. (Under a softcap exponents are not algebraic; then
// a sign that is found is right, but it may never be found.)
#pragma once

#include "core/exact/logits.hpp"

#include <optional>
#include <vector>

namespace flashbound {

// Distinct exponents.
struct Exponents {
  double softcap = 0;
  std::vector<ExactLogit> logits;
  std::vector<Dyadic> estimates;  // of the logits, to find the largest

  void push_back(ExactLogit logit);
};

using Coefficients = std::vector<Dyadic>;  // one an exponent

// sum = exp(s_reference) x mantissa, where the reference has the largest exponent of those that
// have a coefficient. No reference: the sum is exactly zero.
struct ScaledSum {
  std::optional<std::size_t> reference;
  Ball mantissa;
};
ScaledSum exponential_sum(const Exponents& exponents, const Coefficients& coefficients,
                          slong precision);

// s_g - s_h; exact but for a softcap.
Ball difference(const Exponents& exponents, std::size_t g, std::size_t h, slong precision);

// -1, 0 or 1, or nothing where the precision does not show it.
std::optional<int> sign(const ScaledSum& sum);

}  // namespace flashbound
