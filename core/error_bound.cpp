#include "core/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The bound's own arithmetic: a few dozen roundings in fp64, and head_dim of them in G.
constexpr double kOwnRounding = 1 + 0x1p-40;
// e of the statement, beyond which its first line is not evaluated: it says nothing any more.
constexpr double kLargestExponent = 20;

// l: c roundings of relative error u multiply a quantity by a factor within exp(+-c l).
double exponent(double u) { return -std::log1p(-u); }
double exponent(const FormatModel& format) { return exponent(format.unit_roundoff); }

// The symbols of the derivation, for one row in one arithmetic.
struct Terms {
  double n = 0;            // visible keys and the sink
  double logit = 0;        // D
  double weights = 0;      // r_w
  double greatest = 0;     // g
  double numerator = 0;    // r_n
  double denominator = 0;  // r_d
  double evaluation = 0;   // M
  double weight_loss = 0;  // absolute errors of all weights together, in units of the sum
  double sum_loss = 0;     // of the row sum's operations
  double output_loss = 0;  // of O's operations, in O's units
  double lost = 0;         // what underflow takes from the sum, as an exponent
  bool overflow = false;

  double exponent() const { return 2 * (logit + weights) + numerator + denominator + lost; }
  double unshared() const { return numerator + denominator + lost; }
};

// How often a sum of n terms, in `products` products, rounds each of them.
double sum_exponent(const SumModel& sum, double n, double products) {
  const double l = exponent(sum.sum);
  const double product = exponent(sum.product);
  if (sum.block > 0) {
    const auto block = static_cast<double>(sum.block);
    const double blocks = std::min(n, std::ceil(n / block) + products);
    return product + blocks * (std::log1p(sum.cut) + l);
  }
  const double additions = sum.depth > 0 ? std::min(n, sum.depth + products) : n;
  return product + additions * l;
}

double underflow_of(const SumModel& sum) {
  return std::max(sum.product.underflow, sum.sum.underflow);
}
double largest_of(const SumModel& sum) {
  return sum.product.largest > 0 ? std::min(sum.product.largest, sum.sum.largest) : sum.sum.largest;
}

struct Logit {
  double error = 0;
  double magnitude = 0;
  double largest = 0;  // of what lies on the way
};

// u of what arguments of exponentials are rounded to.
double argument_roundoff(const RoundingModel& model) {
  return std::max(model.scores.unit_roundoff, model.statistics.unit_roundoff);
}

// L: keys further below the maximum are counted as lost (part 5), since what they weigh, n exp(-L),
// is far below a rounding; their own relative errors may be large.
double reach(double n, const RoundingModel& model) {
  return std::log(n / argument_roundoff(model)) + 24;
}

// Part 1, but for the bias.
Logit scaled_score(const HeadConditions& head, const RowConditions& row,
                   const RoundingModel& model) {
  const double l = exponent(model.scores);
  const double h = std::max(model.scores.underflow, underflow_of(model.scores_product));
  const auto d = static_cast<double>(head.shape.head_dim);
  const double scale = std::abs(head.scale);
  const double dot = row.product_max;
  const auto panels = static_cast<double>(model.score_roundings);
  const double x = scale * dot;
  const double roundings = sum_exponent(model.scores_product, d, panels) + (2 + panels) * l;
  Logit logit{.error = std::expm1(roundings) * x + 2 * h * (d * scale + panels * scale + dot + 2),
              .magnitude = x,
              .largest = std::max({dot, scale, x})};
  if (head.softcap > 0) {
    const double c = head.softcap;
    // A softcap outside the normal numbers is not the problem's any more.
    if (c < model.scores.smallest_normal) logit.largest = kInfinity;
    logit.largest = std::max({logit.largest, c, (x + logit.error) / c});
    logit.error += std::expm1(4 * l + exponent(model.tanh_error)) * std::min(c, x + logit.error) +
                   4 * h * (c + 1);
    logit.magnitude = std::min(c, x);
  }
  return logit;
}

// Part 1. Also sets `overflow`.
double logit_error(const HeadConditions& head, const RowConditions& row, const RoundingModel& model,
                   Terms& terms) {
  const double l = exponent(model.scores);
  const double h = model.scores.underflow;
  Logit logit = scaled_score(head, row, model);
  if (row.bias_max > 0) {
    const auto distance = static_cast<double>(head.shape.seqlen_q + head.shape.seqlen_kv);
    const double bias_error = std::expm1(3 * l) * row.bias_max + 2 * h * (distance + 1);
    const double rounded = logit.magnitude + logit.error + row.bias_max + bias_error;
    logit.error += bias_error + std::expm1(l) * rounded;
    logit.magnitude = rounded;
    logit.largest = std::max({logit.largest, rounded, distance});
  }
  if (model.scores_stored) {
    logit.error += std::expm1(exponent(model.stored)) * (logit.magnitude + logit.error) +
                   model.stored.underflow;
    if (!(logit.magnitude < model.stored.largest / 4)) terms.overflow = true;
  }
  if (head.sink) {
    const double sink = std::abs(*head.sink);
    logit.largest = std::max(logit.largest, sink);
    logit.error = std::max(logit.error, std::expm1(l) * sink + h);
  }
  const double limit =
      std::min({model.scores.largest, model.statistics.largest, largest_of(model.scores_product)});
  // Written so that NaN counts as overflow. A quarter leaves room for the errors themselves.
  if (!(logit.largest < limit / 4)) terms.overflow = true;
  return logit.error;
}

// Where s and m are scaled by log2 e apart: what that may add to the argument of a weight.
double apart(double largest_logit, const RoundingModel& model) {
  return model.base_two ? 1.01 * argument_roundoff(model) * (largest_logit + 2 * model.offset) : 0;
}

// M: of lse = m + (log(l) - offset), with |m| <= largest_logit and l <= n exp(offset).
double evaluation_exponent(const RoundingModel& model, double n, double largest_logit) {
  const double log_n = std::log(n);
  return exponent(model.log_error) * (log_n + model.offset + 1) +
         exponent(model.statistics) * (largest_logit + 2 * log_n + model.offset + 1);
}

// Part 2: what the exponent of a weight, and the rescales that follow, do to it.
double weight_exponent(const RowConditions& row, const RoundingModel& model, const Terms& t,
                       double own_error, double rescales) {
  const double largest = std::abs(row.logit_max) + own_error + t.logit;
  const double range = row.logit_max - row.logit_min + 2 * (own_error + t.logit) + std::log(t.n);
  const double argument = model.argument_roundings * 1.01 * std::min(range, reach(t.n, model)) *
                              argument_roundoff(model) +
                          apart(largest, model) + 2 * model.scores.underflow +
                          2 * (rescales + 1) * model.statistics.underflow;
  return argument + exponent(model.weight_error) + (rescales + 1) * exponent(model.factor_error) +
         t.evaluation;
}

// Part 5: absolute errors where results fall below the normal numbers.
void set_losses(const RowConditions& row, const RoundingModel& model, double rescales, Terms& t) {
  const double far = 2 * std::exp(-reach(t.n, model));
  const double scale = std::exp(-model.offset);
  const auto folds = static_cast<double>(model.updates);
  const double accumulated = t.n * std::exp(model.threshold);
  double weight = far + model.weight_underflow;
  if (model.weights_normalised) weight += model.scores.underflow;
  if (model.scores_stored) weight += model.stored.underflow;
  const double operand = model.rounded_operands ? model.probabilities.underflow * scale : 0;
  const double factors = rescales * model.factor_underflow * accumulated;
  t.weight_loss = t.n * (weight + operand) + factors;
  t.sum_loss = t.n * weight + factors + (rescales + 1) * model.statistics.underflow * scale;
  const double h = std::max(underflow_of(model.values_product), model.accumulator.underflow);
  t.output_loss = t.weight_loss * row.value_max + (t.n + 4 * (folds + 1)) * h * (1 + scale) +
                  (folds + 1) * model.stored.underflow;
}

// Parts 2, 3 and 5. `own_error` is that of the extremes of the logits in `row`.
Terms row_terms(const HeadConditions& head, const RowConditions& row, const RoundingModel& model,
                double own_error) {
  Terms t;
  t.n = static_cast<double>(row.visible) + (head.sink ? 1.0 : 0.0);
  t.logit = logit_error(head, row, model, t);
  const auto folds = static_cast<double>(model.updates);
  const double rescales = std::min(folds, 2 * t.n);  // a maximum rises at most once a key
  const double largest = std::abs(row.logit_max) + own_error + t.logit;
  t.evaluation = evaluation_exponent(model, t.n, largest);
  t.weights = weight_exponent(row, model, t, own_error, rescales);
  const double l_m = exponent(model.statistics);
  const double l_a = exponent(model.accumulator);
  const double l_o = exponent(model.stored);
  const double divisions = model.output_reloaded ? folds : 1;
  t.numerator = sum_exponent(model.values_product, t.n + folds, folds) + (rescales + 1) * l_a +
                static_cast<double>(model.accumulator_roundings) * l_a +
                (model.output_reloaded ? 2 * folds : 1) * l_a + divisions * l_o + 2 * l_a;
  if (model.rounded_operands) t.numerator += exponent(model.probabilities);
  if (model.weights_normalised) t.numerator += exponent(model.scores);
  if (model.scores_stored) t.numerator += l_o;
  t.denominator = (rescales + 1 + t.n) * l_m;
  set_losses(row, model, rescales, t);
  if (model.base_two) t.greatest = apart(largest, model) + exponent(model.weight_error);
  t.lost = -std::log1p(-std::exp(t.greatest + t.denominator) * t.sum_loss);

  // A stored score may lie above the maximum of those that were not.
  const double above = model.sum_of_other_scores ? 2 * t.logit : 0;
  const double heaviest = std::exp(model.offset + model.threshold + above);
  // exp of what is not positive rounds to no more than 1.
  const double margin = t.greatest + 2 * exponent(model.weight_error) +
                        4 * model.threshold * argument_roundoff(model);
  const double computed = heaviest * std::exp(margin);
  const double sum = t.n * heaviest;
  const double output = std::max(1.0, row.value_max) * sum;
  const auto holds = [](double value, double limit) { return value < limit / 4; };
  const bool apart_is_small = apart(largest, model) < kLargestExponent / 4;
  const bool fits =
      holds(sum, model.statistics.largest) && computed <= model.weight_largest &&
      computed <= model.probabilities.largest && holds(output, model.accumulator.largest) &&
      holds(output, largest_of(model.values_product)) && holds(row.value_max, model.stored.largest);
  // Not below for NaN, which counts as overflow.
  if (!fits || !apart_is_small || !(t.lost < kInfinity)) t.overflow = true;
  return t;
}

// A NaN, from data that is not finite, promises nothing.
double or_infinity(double bound) { return std::isnan(bound) ? kInfinity : bound * kOwnRounding; }

// Of the lse of a row that sees nothing: the sink itself, converted and added to log 1.
double sink_error(const HeadConditions& head, const RoundingModel& model) {
  if (!head.sink) return 0;
  const double sink = std::abs(*head.sink);
  if (sink >= std::min(model.scores.largest, model.statistics.largest) / 4) return kInfinity;
  return 3 * argument_roundoff(model) * (sink + 2 * model.offset) +
         2 * std::max(model.scores.underflow, model.statistics.underflow);
}

void row_bound(const HeadConditions& head, Index r, const RoundingModel& model, ErrorBound& bound) {
  const RowConditions& row = head.rows[static_cast<std::size_t>(r)];
  const RoundingModel own = reference_rounding();
  if (row.visible == 0) {
    bound.o.row(r).setZero();
    bound.lse(r) = sink_error(head, model);
    return;
  }
  Terms unused;
  const double own_error = logit_error(head, row, own, unused);
  const Terms t = row_terms(head, row, model, own_error);
  const Terms mine = row_terms(head, row, own, own_error);
  if (t.overflow || mine.overflow) {
    bound.o.row(r).setConstant(kInfinity);
    bound.lse(r) = kInfinity;
    return;
  }
  bound.lse(r) = or_infinity(t.logit + t.weights + t.denominator + t.lost + t.evaluation);

  const double small = std::exp(t.greatest + t.unshared()) * t.output_loss;
  const bool weights_known =
      t.exponent() <= kLargestExponent && mine.exponent() <= kLargestExponent;
  // The exact A from the one that fp64 gave.
  const double magnified = std::exp(mine.exponent());
  const double own_small = magnified * mine.output_loss;
  for (Index c = 0; c < bound.o.cols(); ++c) {
    const double convex =
        model.sum_of_other_scores
            ? kInfinity
            : head.spread(r, c) + std::expm1(t.unshared()) * row.value_max + small;
    const double a = head.mean_magnitude(r, c) * magnified + own_small;
    const double weighted = weights_known ? std::expm1(t.exponent()) * a + small : kInfinity;
    const double least = std::min(weighted, convex);
    bound.o(r, c) = std::isfinite(head.mean_magnitude(r, c)) ? or_infinity(least) : kInfinity;
  }
}

}  // namespace

ErrorBound error_bound(const HeadConditions& conditions, const RoundingModel& model) {
  ErrorBound bound{RowMatrix(conditions.mean_magnitude.rows(), conditions.mean_magnitude.cols()),
                   Eigen::VectorXd(conditions.mean_magnitude.rows())};
  for (Index r = 0; r < bound.o.rows(); ++r) row_bound(conditions, r, model, bound);
  return bound;
}

}  // namespace flashbound
