#include "core/exact/exponential_sum.hpp"

#include <utility>

namespace flashbound {

void Exponents::push_back(ExactLogit logit) {
  Dyadic estimate;
  arf_set(estimate.get(), arb_midref(ball_of(logit, softcap, 64).get()));
  estimates.push_back(std::move(estimate));
  logits.push_back(std::move(logit));
}

Ball difference(const Exponents& exponents, std::size_t g, std::size_t h, slong precision) {
  if (g == h) return {};
  const ExactLogit& a = exponents.logits[g];
  const ExactLogit& b = exponents.logits[h];
  // The plain parts are subtracted exactly: large logits that are close lose nothing.
  Ball result = ball_of({a.capped, Dyadic()}, exponents.softcap, precision);
  const Ball other = ball_of({b.capped, Dyadic()}, exponents.softcap, precision);
  Dyadic plain = a.plain;
  plain -= b.plain;
  if (a.capped.is_zero() && b.capped.is_zero()) {
    arb_set_arf(result.get(), plain.get());
  } else {
    arb_sub(result.get(), result.get(), other.get(), precision);
    arb_add_arf(result.get(), result.get(), plain.get(), precision);
  }
  return result;
}

ScaledSum exponential_sum(const Exponents& exponents, const Coefficients& coefficients,
                          slong precision) {
  ScaledSum result;
  for (std::size_t g = 0; g < coefficients.size(); ++g) {
    if (coefficients[g].is_zero()) continue;
    if (!result.reference || exponents.estimates[*result.reference] < exponents.estimates[g]) {
      result.reference = g;
    }
  }
  for (std::size_t g = 0; g < coefficients.size(); ++g) {
    if (coefficients[g].is_zero()) continue;
    Ball term = difference(exponents, g, *result.reference, precision);
    arb_exp(term.get(), term.get(), precision);
    arb_addmul_arf(result.mantissa.get(), term.get(), coefficients[g].get(), precision);
  }
  return result;
}

std::optional<int> sign(const ScaledSum& sum) {
  if (!sum.reference) return 0;
  if (arb_is_positive(sum.mantissa.get()) != 0) return 1;
  if (arb_is_negative(sum.mantissa.get()) != 0) return -1;
  return std::nullopt;
}

}  // namespace flashbound
