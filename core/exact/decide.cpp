#include "core/exact/decide.hpp"

#include "core/exact/precision.hpp"
#include "core/exact/rounding.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace flashbound {
namespace {

// exp(s_g - s_h)
Ball ratio(const Exponents& exponents, std::size_t g, std::size_t h, slong precision) {
  Ball result = difference(exponents, g, h, precision);
  arb_exp(result.get(), result.get(), precision);
  return result;
}

Coefficients exact_counts(const std::vector<Index>& counts) {
  Coefficients result;
  for (const Index count : counts) result.emplace_back(static_cast<double>(count));
  return result;
}

std::size_t largest(const Exponents& exponents) {
  const auto& all = exponents.estimates;
  return static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin());
}

// log sum_g n_g exp(s_g) = s + log1p(the sum over all but one key of the largest logit s).
Ball log_sum(const Exponents& exponents, const std::vector<Index>& counts, slong precision) {
  const std::size_t top = largest(exponents);
  Coefficients others = exact_counts(counts);
  others[top] -= Dyadic(1);
  ScaledSum sum = exponential_sum(exponents, others, precision);
  Ball result = ball_of(exponents.logits[top], exponents.softcap, precision);
  if (!sum.reference) return result;
  const Ball scale = ratio(exponents, *sum.reference, top, precision);
  arb_mul(sum.mantissa.get(), sum.mantissa.get(), scale.get(), precision);
  arb_log1p(sum.mantissa.get(), sum.mantissa.get(), precision);
  arb_add(result.get(), result.get(), sum.mantissa.get(), precision);
  return result;
}

Ball quotient(const Exponents& exponents, const Coefficients& numerator,
              const Coefficients& denominator, slong precision) {
  ScaledSum above = exponential_sum(exponents, numerator, precision);
  if (!above.reference) return {};
  const ScaledSum below = exponential_sum(exponents, denominator, precision);
  const Ball scale = ratio(exponents, *above.reference, *below.reference, precision);
  Ball result;
  arb_mul(result.get(), above.mantissa.get(), scale.get(), precision);
  arb_div(result.get(), result.get(), below.mantissa.get(), precision);
  return result;
}

// Doubles the precision until the ball rounds one way or the sign beside its boundary is known.
template <class BallAt, class SignAt>
Decision decide(const ExactOptions& options, const BallAt& ball_at, const SignAt& sign_at) {
  for (int precision = options.first_precision; precision > 0;
       precision = next_precision(precision, options)) {
    const Ball ball = ball_at(precision);
    const Rounding rounding = round_ball(ball.get());
    if (rounding.value) return {rounding.value, precision};
    if (!rounding.boundary) continue;
    const std::optional<int> side = sign_at(*rounding.boundary, precision);
    if (side) return {round_at_boundary(rounding, *side), precision};
  }
  return {std::nullopt, options.precision_cap};
}

}  // namespace

RowDecider::RowDecider(const Head& head, Index query, const ExactOptions& options)
    : options_(options), row_(exact_row(head, query)), group_(row_.keys.size()) {
  exponents_.softcap = head.problem().softcap;
  std::vector<std::size_t> order(row_.keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto& logits = row_.logits;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return logits[a] < logits[b]; });
  for (const std::size_t n : order) {
    // Only a new logit differs from the last group's.
    if (exponents_.logits.empty() || !(exponents_.logits.back() == logits[n])) {
      exponents_.push_back(logits[n]);
      counts_.push_back(0);
    }
    ++counts_.back();
    group_[n] = counts_.size() - 1;
  }
  if (head.sink()) add({Dyadic(), Dyadic(*head.sink())}, 1);
  if (row_.keys.empty()) return;
  const Interval span{row_.keys.front(), row_.keys.back() + 1};
  const RowMatrix all = head.values(span);
  values_.resize(static_cast<Index>(row_.keys.size()), all.cols());
  for (std::size_t n = 0; n < row_.keys.size(); ++n) {
    values_.row(static_cast<Index>(n)) = all.row(row_.keys[n] - span.begin);
  }
}

void RowDecider::add(ExactLogit logit, Index count) {
  const auto found = std::find(exponents_.logits.begin(), exponents_.logits.end(), logit);
  if (found == exponents_.logits.end()) {
    exponents_.push_back(std::move(logit));
    counts_.push_back(count);
  } else {
    counts_[static_cast<std::size_t>(found - exponents_.logits.begin())] += count;
  }
}

Coefficients RowDecider::sums_of_values(Index column) const {
  Coefficients sums(counts_.size());
  for (std::size_t n = 0; n < group_.size(); ++n) {
    sums[group_[n]] += Dyadic(values_(static_cast<Index>(n), column));
  }
  return sums;
}

Decision RowDecider::lse() const {
  return decide(
      options_, [&](slong precision) { return log_sum(exponents_, counts_, precision); },
      [&](const Dyadic& boundary, slong precision) {
        RowDecider beside = *this;
        beside.add({Dyadic(), boundary}, -1);
        return sign(exponential_sum(beside.exponents_, exact_counts(beside.counts_), precision));
      });
}

Decision RowDecider::o(Index column) const {
  const Coefficients sums = sums_of_values(column);
  const Coefficients counts = exact_counts(counts_);
  return decide(
      options_, [&](slong precision) { return quotient(exponents_, sums, counts, precision); },
      [&](const Dyadic& boundary, slong precision) {
        Coefficients beside = sums;
        for (std::size_t g = 0; g < beside.size(); ++g) {
          Dyadic share = counts[g];
          share *= boundary;
          beside[g] -= share;
        }
        return sign(exponential_sum(exponents_, beside, precision));
      });
}

}  // namespace flashbound
