#include "core/error_bound.hpp"
#include "experiments/numerics/emulated_head.hpp"
#include "experiments/numerics/qiu_yao_claims.hpp"
#include "experiments/numerics/qiu_yao_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace flashbound {
namespace {

constexpr std::array<double, 4> kFactors{2, 4, 7, 8};
constexpr double kUsed = 7;
constexpr double kUnbiased = 1e-3;  // sign-test p-values above it show no bias
constexpr std::uint64_t kSeeds = 4;

Recipe with_shift(Recipe recipe, double factor) {
  recipe.shift = Shift::avoid_one;
  recipe.shift_factor = factor;
  return recipe;
}

// Every key twice in a row, so that every block repeats its maximum; query rows have maxima of both
// signs since there are few keys.
EmulatedHead twice_each_key(std::uint64_t seed) {
  EmulatedHead head = head_with_scores_of({128, 8, 16, 8}, {.block_q = 64, .block_kv = 4}, 2, seed);
  const TensorView<double> k = head.inputs.k.view();
  for (Index j = 1; j < 8; j += 2) {
    for (Index c = 0; c < 16; ++c) k(0, 0, j, c) = k(0, 0, j - 1, c);
  }
  return head;
}

// How far fp64 results with and without the shift are apart, as a share of what rounding admits.
// That is the error bound and, since the bound takes shifts to be maxima, the rounding of s - m and
// of rescaling for a shift of up to beta |rm|, relative to the largest |v|.
double share_of_bounds(double factor) {
  double share = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const EmulatedHead head = twice_each_key(seed);
    const Recipe fp64 = sequential_recipe(NumberFormat::fp64);
    const NumericRun plain = run_flash2(head, fp64);
    const NumericRun shifted = run_flash2(head, with_shift(fp64, factor));
    const Sequence at = sequence(head.problem, 0);
    const HeadConditions conditions = head_conditions(head.problem, head.inputs.view(), at, 0);
    const ErrorBound bound = error_bound(
        conditions,
        program_rounding(NumberFormat::fp64, schedule_for(head.problem, head.tile, at)));
    const HeadTensor& a = *plain.find("o");
    const HeadTensor& b = *shifted.find("o");
    for (Index r = 0; r < a.rows; ++r) {
      const RowConditions& row = conditions.rows[static_cast<std::size_t>(r)];
      const double shift = 3 * 0x1p-53 * factor * std::abs(row.logit_max) * row.value_max;
      for (Index c = 0; c < a.cols; ++c) {
        share = std::max(share, std::abs(a(r, c) - b(r, c)) / (2 * bound.o(r, c) + 4 * shift));
      }
    }
  }
  return share;
}

// Two keys of the same logit, so that every weight is exp(-(beta - 1) logit), and values of 1:
// whether the row still gives 1, within a percent.
bool survives(Recipe recipe, double logit) {
  recipe.inputs = float_format(NumberFormat::fp32);  // any logit, whatever the weights' format
  EmulatedHead head{{}, {.block_q = 1, .block_kv = 2}, {}};
  head.problem.seqlen_q = head.problem.head_dim = head.problem.head_dim_v = 1;
  head.problem.seqlen_kv = 2;
  head.problem.softmax_scale = 1;
  head.inputs = {Tensor<double>({1, 1, 1, 1}, 1), Tensor<double>({1, 1, 2, 1}, logit),
                 Tensor<double>({1, 1, 2, 1}, 1)};
  return std::abs(run_flash2(head, recipe).find("o")->values[0] - 1) < 0.01;
}

// The largest maximum that survives.
double largest_maximum(std::string_view recipe_name, double factor) {
  const Recipe recipe = with_shift(recipe_named(recipe_name), factor);
  double low = 0.01;
  double high = 200;
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (survives(recipe, middle) ? low : high) = middle;
  }
  return low;
}

struct Row {
  double factor = 0;
  double maximum = 0;  // logit of the biased rows
  RowErrors errors{};
  double share = 0;
  double bf16_limit = 0;
  double fp16_limit = 0;
  double predicted = 0;
};

Row observed(double factor, const ParallelFor& parallel_for) {
  Row row{.factor = factor, .maximum = 1};
  row.errors = tied_row_errors({.product = RoundedProduct::once,
                                .maximum = row.maximum,
                                .shift = Shift::avoid_one,
                                .shift_factor = factor},
                               parallel_for);
  std::array<double, 3> results{};
  parallel_for(3, [&](Index part) {
    if (part == 0) results[0] = share_of_bounds(factor);
    if (part == 1) results[1] = largest_maximum("flash2-bf16", factor);
    if (part == 2) results[2] = largest_maximum("flash2-fp16", factor);
  });
  row.share = results[0];
  row.bf16_limit = results[1];
  row.fp16_limit = results[2];
  // exp2 flushes results below 2^-126.
  row.predicted = 126 * std::numbers::ln2 / (factor - 1);
  return row;
}

ClaimTable table_of(const std::vector<Row>& rows, const RowErrors& unshifted,
                    const RowErrors& negative) {
  ClaimTable table{{"shift", "mean_error_ulp", "row_mean_sign_test_p", "fp64_share_of_bounds",
                    "largest_maximum_bf16", "largest_maximum_predicted", "largest_maximum_fp16"},
                   {}};
  const auto bias = [&](const std::string& shift, const RowErrors& errors) {
    return std::vector<std::string>{shift, fmt::format("{:+.4f}", errors.outputs.mean),
                                    fmt::format("{:.1e}", errors.row_means.sign_test_p)};
  };
  table.rows.push_back(bias("rm = 1", unshifted));
  table.rows.push_back(bias("0 (rm = -1.5)", negative));
  for (std::vector<std::string>& row : table.rows) row.resize(table.columns.size(), "-");
  for (const Row& row : rows) {
    table.rows.push_back(bias(fmt::format("{} rm", row.factor), row.errors));
    table.rows.back().insert(
        table.rows.back().end(),
        {fmt::format("{:.1e}", row.share), fmt::format("{:.2f}", row.bf16_limit),
         fmt::format("{:.2f}", row.predicted), fmt::format("{:.2f}", row.fp16_limit)});
  }
  return table;
}

ClaimResult concluded(const std::vector<Row>& rows, const RowErrors& unshifted,
                      const RowErrors& negative) {
  double share = 0;
  double p = negative.row_means.sign_test_p;
  bool as_predicted = true;
  Row used;
  for (const Row& row : rows) {
    share = std::max(share, row.share);
    p = std::min(p, row.errors.row_means.sign_test_p);
    as_predicted = as_predicted && std::abs(row.bf16_limit / row.predicted - 1) < 0.01;
    if (row.factor == kUsed) used = row;
  }
  const bool same = share <= 1;
  const bool removed = p > kUnbiased;
  const bool bounded = used.bf16_limit < 100;
  ClaimResult result{table_of(rows, unshifted, negative), Verdict::refuted, ""};
  if (same && removed) result.verdict = bounded ? Verdict::qualified : Verdict::confirmed;
  result.argument = fmt::format(
      "In fp64 results with and without the shift differ by at most {:.1e} of what rounding "
      "admits, and the bias, {:+.3f} ulp without it, {} (smallest p {:.2g}, over beta 2 to 8 and "
      "the shift 0). But the largest weight of such a row is exp(-(beta - 1) rm): at beta = 7 all "
      "weights of a row are flushed to zero beyond rm = {:.2f} in fp32 ({} 126 ln 2 / (beta - 1)) "
      "and, as fp16 operands of P V, far from exact from {:.2f} on. The row's sum is then 0, and a "
      "kernel returns 0 / 0. Smaller beta move the limit: {:.1f} at beta = 2.",
      share, unshifted.outputs.mean, removed ? "is gone" : "stays in part", p, used.bf16_limit,
      as_predicted ? "as predicted," : "not", used.fp16_limit, rows.front().bf16_limit);
  return result;
}

}  // namespace

ClaimResult shift_removes_bias(const ParallelFor& parallel_for) {
  const RowErrors unshifted = tied_row_errors({.product = RoundedProduct::once}, parallel_for);
  const RowErrors negative = tied_row_errors(
      {.product = RoundedProduct::once, .maximum = -1.5, .shift = Shift::avoid_one}, parallel_for);
  std::vector<Row> rows;
  rows.reserve(kFactors.size());
  for (const double factor : kFactors) rows.push_back(observed(factor, parallel_for));
  return concluded(rows, unshifted, negative);
}

}  // namespace flashbound
