#include "core/error_bound.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The bound's own arithmetic: a few dozen roundings in fp64, and head_dim of them in G.
constexpr double kOwnRounding = 1 + 0x1p-40;
// Of the exponent range, what weights may use before they count as lost; the rest absorbs errors.
constexpr double kUsableRange = 0.98;
constexpr double kLargestExponent = 1;  // e of the statement, where its first line still applies
// Logits below it have a D far under 1 in fp32 for every head_dim, and need no spread.
constexpr double kLargeProduct = 1e3;

// The symbols of the derivation, for one row in one arithmetic.
struct Terms {
  double l = 0;  // of one rounding
  double h = 0;  // smallest subnormal
  double n = 0;  // visible keys and the sink
  double log_n = 0;
  double depth = 0;       // log of the largest over the smallest normal weight
  double logit = 0;       // D
  double evaluation = 0;  // M
  double weights = 0;     // r_w
  double lost = 0;        // what underflow takes from the sum, as an exponent
  double quotients = 0;   // (3 + 2 U) l
  double unshared = 0;    // r
  bool overflow = false;

  double exponent() const { return 2 * logit + 2 * weights + quotients + lost; }
};

double function_exponent(double error_in_u, double u) { return -std::log1p(-error_in_u * u); }

// Part 1. Also sets `overflow`.
double logit_error(const HeadConditions& head, const RowConditions& row, const RoundingModel& model,
                   Terms& terms) {
  const double l = terms.l;
  const double h = terms.h;
  const auto d = static_cast<double>(head.shape.head_dim);
  const double scale = std::abs(head.scale);
  const double dot = row.product_max;
  const double x = scale * dot;
  double error = std::expm1((d + 2) * l) * x + 2 * h * (d * scale + dot + 2);
  double magnitude = x;
  double largest = std::max({dot, scale, x});
  if (head.softcap > 0) {
    const double c = head.softcap;
    // A softcap outside the normal numbers is not the problem's any more.
    if (c < model.smallest_normal) terms.overflow = true;
    largest = std::max(largest, c);
    const double tanh_l = function_exponent(model.tanh_error, model.unit_roundoff);
    error += std::expm1(4 * l + tanh_l) * std::min(c, x + error) + 4 * h * (c + 1);
    magnitude = std::min(c, x);
  }
  if (row.bias_max > 0) {
    const auto distance = static_cast<double>(head.shape.seqlen_q + head.shape.seqlen_kv);
    const double bias_error = std::expm1(3 * l) * row.bias_max + 2 * h * (distance + 1);
    const double rounded = magnitude + error + row.bias_max + bias_error;
    error += bias_error + std::expm1(l) * rounded;
    largest = std::max(largest, rounded);
  }
  if (head.sink) {
    largest = std::max(largest, std::abs(*head.sink));
    error = std::max(error, std::expm1(l) * std::abs(*head.sink) + h);
  }
  // Written so that NaN counts as overflow. A quarter leaves room for the errors themselves.
  if (!(largest < model.largest_finite / 4)) terms.overflow = true;
  return error;
}

// Parts 2, 3 and 5. `own_error` is that of the extremes of the logits in `row`.
Terms row_terms(const HeadConditions& head, const RowConditions& row, const RoundingModel& model,
                double own_error) {
  const double u = model.unit_roundoff;
  Terms t;
  t.l = function_exponent(1, u);
  t.h = model.smallest_normal * 2 * u;
  t.n = static_cast<double>(row.visible) + (head.sink ? 1.0 : 0.0);
  t.log_n = std::log(t.n);
  t.depth = -std::log(model.smallest_normal);
  t.logit = logit_error(head, row, model, t);

  const double largest = std::abs(row.logit_max) + own_error + t.logit;
  const double furthest = std::max(largest, std::abs(row.logit_min) + own_error + t.logit);
  const double range = row.logit_max - row.logit_min + 2 * own_error + 2 * t.logit;
  const double lse = std::min(furthest, largest + t.depth) + t.log_n;
  const double log_l = function_exponent(model.log_error, u);
  t.evaluation = log_l * (t.log_n + 1) + t.l * (lse + t.log_n + 1);

  const auto folds = static_cast<double>(model.updates);
  const double rescales = std::min(folds, 2 * t.n);  // a maximum rises at most once a key
  const double exp_l = function_exponent(model.exp_error, u);
  t.weights = (std::min(range, t.depth) + t.log_n) * u + (rescales + 2) * exp_l +
              (rescales + 1 + t.n) * t.l + t.evaluation;
  t.quotients = (3 + 2 * folds) * t.l;
  t.unshared = 2 * (rescales + 1 + t.n) * t.l + t.n * t.l + t.quotients;
  const double smallest_weight = t.n * std::exp(-kUsableRange * t.depth);
  t.lost = -std::log1p(-2 * t.n * smallest_weight);
  return t;
}

// t of the statement.
double underflow(const Terms& t, const RowConditions& row, const RoundingModel& model) {
  const double smallest_weight = t.n * std::exp(-kUsableRange * t.depth);
  const auto folds = static_cast<double>(model.updates);
  return std::exp(1.0) * (2 * t.n * smallest_weight * row.value_max +
                          t.h * (t.n * (1 + row.value_max) + 4 * (folds + 1)));
}

// A NaN, from data that is not finite, promises nothing.
double or_infinity(double bound) { return std::isnan(bound) ? kInfinity : bound * kOwnRounding; }

// Of the lse of a row that sees nothing: the sink itself, converted and added to log 1.
double sink_error(const HeadConditions& head, const RoundingModel& model) {
  if (!head.sink) return 0;
  const double sink = std::abs(*head.sink);
  if (sink >= model.largest_finite / 4) return kInfinity;
  return 3 * model.unit_roundoff * sink + 2 * model.smallest_normal;
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
  const bool finite = !t.overflow && !mine.overflow &&
                      t.n * row.value_max < model.largest_finite / 4 && t.unshared < 1;
  if (!finite) {
    bound.o.row(r).setConstant(kInfinity);
    bound.lse(r) = kInfinity;
    return;
  }
  bound.lse(r) = or_infinity(t.logit + t.weights + t.lost + t.evaluation);

  const double small = underflow(t, row, model);
  const bool weights_known =
      t.exponent() <= kLargestExponent && mine.exponent() <= kLargestExponent;
  // The exact A from the one that fp64 gave.
  const double magnified = std::exp(mine.exponent());
  const double own_small = underflow(mine, row, own);
  for (Index c = 0; c < bound.o.cols(); ++c) {
    const double convex = head.spread(r, c) + std::expm1(t.unshared) * row.value_max + small;
    const double a = head.mean_magnitude(r, c) * magnified + own_small;
    const double weighted = weights_known ? std::expm1(t.exponent()) * a + small : kInfinity;
    const double least = std::min(weighted, convex);
    bound.o(r, c) = std::isfinite(head.mean_magnitude(r, c)) ? or_infinity(least) : kInfinity;
  }
}

// What one block of keys brings to the extremes of a row.
struct KeyMagnitudes {
  Block keys;
  RowMatrix products;      // sum_c |q_c k_jc|: rows x keys
  Eigen::VectorXd values;  // max_c |v_jc|, finite ones
};

// Extremes of one row over the visible keys of one block of keys.
void observe(const Head& head, const QueryBlock& block, const KeyMagnitudes& magnitudes, Index r,
             RowConditions& row) {
  const Block& keys = magnitudes.keys;
  const Schedule& schedule = head.schedule();
  const Index query = block.rows.begin + r;
  const Index diagonal = query + schedule.shape.seqlen_kv - schedule.shape.seqlen_q;
  const double slope = std::abs(head.alibi_slope());
  for (Index c = 0; c < keys.span.size(); ++c) {
    const Index key = keys.span.begin + c;
    if (keys.coverage != Coverage::full && !schedule.visible(query, key)) continue;
    ++row.visible;
    const double logit = block.logits(r, block.column(keys) + c);
    row.logit_max = std::max(row.logit_max, logit);
    row.logit_min = std::min(row.logit_min, logit);
    // A NaN must not vanish in a maximum.
    const double product = magnitudes.products(r, c);
    if (!std::isfinite(product)) row.product_max = kInfinity;
    row.product_max = std::max(row.product_max, product);
    row.bias_max = std::max(row.bias_max, slope * static_cast<double>(std::abs(diagonal - key)));
    row.value_max = std::max(row.value_max, magnitudes.values(c));
  }
}

Eigen::VectorXd finite_magnitudes(const RowMatrix& v) {
  Eigen::VectorXd result = Eigen::VectorXd::Zero(v.rows());
  for (Index j = 0; j < v.rows(); ++j) {
    for (Index c = 0; c < v.cols(); ++c) {
      if (std::isfinite(v(j, c))) result(j) = std::max(result(j), std::abs(v(j, c)));
    }
  }
  return result;
}

// max v - min v over the visible keys, column by column.
Eigen::RowVectorXd spread_of(const Head& head, const QueryBlock& block, Index r) {
  const Index cols = head.problem().head_dim_v;
  Eigen::RowVectorXd high = Eigen::RowVectorXd::Constant(cols, -kInfinity);
  if (head.sink()) high.setZero();
  Eigen::RowVectorXd low = -high;
  for (const Block& keys : block.blocks) {
    const RowMatrix v = head.values(keys.span);
    for (Index c = 0; c < v.rows(); ++c) {
      if (!head.schedule().visible(block.rows.begin + r, keys.span.begin + c)) continue;
      high = high.cwiseMax(v.row(c));
      low = low.cwiseMin(v.row(c));
    }
  }
  return high - low;
}

void block_conditions(const Head& head, Index i, HeadConditions& result) {
  QueryBlock block = query_block(head, i);
  const RowMatrix q = head.queries(block.rows).cwiseAbs();
  std::vector<RowConditions> rows(static_cast<std::size_t>(block.rows.size()));
  for (RowConditions& row : rows) {
    row.logit_max = head.sink().value_or(-kInfinity);
    row.logit_min = head.sink().value_or(kInfinity);
  }
  for (const Block& keys : block.blocks) {
    const KeyMagnitudes magnitudes{keys, q * head.keys(keys.span).cwiseAbs().transpose(),
                                   finite_magnitudes(head.values(keys.span))};
    for (Index r = 0; r < q.rows(); ++r) {
      observe(head, block, magnitudes, r, rows[static_cast<std::size_t>(r)]);
    }
  }
  for (Index r = 0; r < q.rows(); ++r) {
    const RowConditions& row = rows[static_cast<std::size_t>(r)];
    const Index at = block.rows.begin + r;
    result.rows[static_cast<std::size_t>(at)] = row;
    if (row.visible > 0 && row.product_max * std::abs(result.scale) > kLargeProduct) {
      result.spread.row(at) = spread_of(head, block, r);
    }
  }
  RowMatrix mean = RowMatrix::Zero(q.rows(), head.problem().head_dim_v);
  Eigen::VectorXd sums(q.rows());
  for (Index r = 0; r < q.rows(); ++r) {
    sums(r) = exponentiate_row(block.logits.row(r), head.sink()).sum;
  }
  add_weighted_magnitudes(head, block, block.logits, mean);
  for (Index r = 0; r < q.rows(); ++r) {
    if (sums(r) != 0) mean.row(r) /= sums(r);
  }
  result.mean_magnitude.middleRows(block.rows.begin, block.rows.size()) = mean;
}

}  // namespace

RoundingModel reference_rounding() {
  return {.unit_roundoff = unit_roundoff(NumberFormat::fp64),
          .smallest_normal = std::numeric_limits<double>::min(),
          .largest_finite = std::numeric_limits<double>::max()};
}

RoundingModel program_rounding(NumberFormat format, const Schedule& schedule) {
  RoundingModel model = reference_rounding();
  if (format == NumberFormat::fp32) {
    model.unit_roundoff = unit_roundoff(NumberFormat::fp32);
    model.smallest_normal = static_cast<double>(std::numeric_limits<float>::min());
    model.largest_finite = static_cast<double>(std::numeric_limits<float>::max());
  } else if (format != NumberFormat::fp64) {
    reject("arithmetic", std::string(name(format)), "fp64 or fp32");
  }
  // A row is folded once a block of keys and merged once a block or a split.
  model.updates = 2 * schedule.kv_block_count() + schedule.tile.num_splits;
  return model;
}

HeadConditions head_conditions(const Problem& problem, const Inputs& inputs,
                               const Sequence& sequence, Index head,
                               const ParallelFor& parallel_for) {
  validate(problem, inputs);
  const Head at(problem, inputs, sequence, head);
  HeadConditions result;
  result.shape = at.schedule().shape;
  result.scale = softmax_scale(problem);
  result.softcap = problem.softcap;
  result.sink = at.sink();
  result.rows.resize(static_cast<std::size_t>(sequence.seqlen_q));
  result.mean_magnitude.resize(sequence.seqlen_q, problem.head_dim_v);
  result.spread = RowMatrix::Constant(sequence.seqlen_q, problem.head_dim_v, kInfinity);
  parallel_for(at.schedule().q_block_count(), [&](Index i) { block_conditions(at, i, result); });
  return result;
}

ErrorBound error_bound(const HeadConditions& conditions, const RoundingModel& model) {
  ErrorBound bound{RowMatrix(conditions.mean_magnitude.rows(), conditions.mean_magnitude.cols()),
                   Eigen::VectorXd(conditions.mean_magnitude.rows())};
  for (Index r = 0; r < bound.o.rows(); ++r) row_bound(conditions, r, model, bound);
  return bound;
}

}  // namespace flashbound
