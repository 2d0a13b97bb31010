#include "experiments/numerics/deviation.hpp"

#include "core/error_metrics.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "core/reference.hpp"
#include "experiments/distributions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace flashbound {
namespace {

Inputs first_queries(const Problem& problem, Inputs inputs) {
  inputs.q.shape[2] = problem.seqlen_q;
  return inputs;
}

// Ranks from 0; equal values share their mean.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    const double rank = static_cast<double>(first + last - 1) / 2;
    for (; first < last; ++first) result[order[first]] = rank;
  }
  return result;
}

}  // namespace

HeadCase head_case(std::string_view distribution, Index rows, Index seqlen_kv, Index head_dim,
                   const FloatFormat& format, std::uint64_t seed) {
  HeadCase result;
  result.problem.seqlen_q = rows;
  result.problem.seqlen_kv = seqlen_kv;
  result.problem.head_dim = result.problem.head_dim_v = head_dim;
  result.inputs = distribution_inputs(distribution, result.problem, seed);
  round_to(result.inputs, format);
  result.exact = reference_output(result.problem, result.inputs.view());
  return result;
}

std::vector<double> reference_output(const Problem& problem, const Inputs& inputs) {
  const RowMatrix o =
      reference_head(problem, first_queries(problem, inputs), sequence(problem, 0), 0).o;
  return {o.data(), o.data() + o.size()};
}

std::vector<double> numeric_output(std::string_view algorithm, const Recipe& recipe,
                                   const Problem& problem, const Tile& tile, const Inputs& inputs) {
  const NumericRun run =
      run_numeric(algorithm_named(algorithm).program(), problem, tile,
                  first_queries(problem, inputs), sequence(problem, 0), 0, recipe);
  return run.find("o")->values;
}

Deviation deviation(std::span<const double> computed, std::span<const double> exact) {
  const ErrorMetrics metrics =
      error_metrics(computed, exact, float_format(NumberFormat::fp64));  // ulps are not looked at
  if (metrics.finite != metrics.count) throw std::runtime_error("an output is not finite");
  double sum = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) sum += std::abs(computed[i] - exact[i]);
  return {metrics.max_abs, sum / static_cast<double>(exact.size()), metrics.rmse};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks(x);
  const std::vector<double> b = ranks(y);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

std::string scientific(double value) { return fmt::format("{:.2e}", value); }
std::string plain(double value) { return fmt::format("{:#.3g}", value); }

}  // namespace flashbound
