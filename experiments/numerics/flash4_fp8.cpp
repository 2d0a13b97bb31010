#include "core/error_metrics.hpp"
#include "core/quantization.hpp"
#include "core/reference.hpp"
#include "experiments/distributions.hpp"
#include "experiments/numerics/emulated_head.hpp"
#include "experiments/numerics/flash4_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace flashbound {
namespace {

constexpr Shape kShape{64, 1024, 64, 64};
constexpr Tile kTile{.block_q = 64, .block_kv = 64};
constexpr std::uint64_t kSeeds = 6;
constexpr double kSafe = 0.75;  // 2^(8 + 0.75) = 431 < 448

enum class Scores { independent, increasing };

struct Row {
  Scores scores{};
  int offset_log2 = 0;
  double tau = 0;
  Index weights = 0;
  Index overflows = 0;
  double rmse = 0;  // of all outputs
  Bias bias{};      // of one output a row, relative to its exact value
};

EmulatedHead head_of(Scores scores, std::uint64_t seed) {
  EmulatedHead head = head_with_scores_of(kShape, kTile, 1, seed);
  if (scores == Scores::increasing) {
    head.problem.softmax_scale.reset();
    head.inputs = distribution_inputs("increasing-scores", head.problem, seed);
  }
  // Values of one sign, so that weights that are too small show as outputs that are.
  for (double& v : head.inputs.v.elements) v = 1 + v / 4;
  return head;
}

Recipe recipe_of(const Row& row) {
  Recipe recipe = recipe_named("flash3-fp8");
  recipe.weight_offset_log2 = row.offset_log2;
  recipe.rescale = {.rule = RescaleRule::beyond_threshold, .threshold_log2 = row.tau};
  return recipe;
}

void observe(Row& row) {
  const Recipe recipe = recipe_of(row);
  std::vector<double> computed;
  std::vector<double> exact;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EmulatedHead head = head_of(row.scores, seed);
    head.inputs = rounded_inputs(recipe, head.problem, head.inputs.view(), seed);
    const HeadOutput reference =
        reference_head(head.problem, head.inputs.view(), sequence(head.problem, 0), 0);
    const NumericRun run = run_flash2(head, recipe);
    const HeadTensor& o = *run.find("o");
    const std::span<const double> all(reference.o.data(), o.values.size());
    row.rmse += error_metrics(o.values, all, recipe.stored).rmse / static_cast<double>(kSeeds);
    row.weights += kShape.seqlen_q * kShape.seqlen_kv;
    row.overflows += run.range.overflows;
    for (Index r = 0; r < o.rows; ++r) {
      computed.push_back(o(r, r % o.cols) / reference.o(r, r % o.cols));
      exact.push_back(1);
    }
  }
  row.bias = error_metrics(computed, exact, recipe.stored).signed_error;
}

std::string_view name(Scores scores) {
  return scores == Scores::independent ? "independent" : "increasing";
}

ClaimTable table_of(const std::vector<Row>& rows) {
  ClaimTable table{{"scores", "offset_log2", "tau_log2", "largest_weight_admitted",
                    "saturated_per_million", "rmse", "mean_relative_error", "sign_test_p"},
                   {}};
  for (const Row& row : rows) {
    table.rows.push_back({std::string(name(row.scores)), fmt::format("{}", row.offset_log2),
                          fmt::format("{}", row.tau),
                          fmt::format("{:.0f}", std::exp2(row.offset_log2 + row.tau)),
                          fmt::format("{:.0f}", 1e6 * static_cast<double>(row.overflows) /
                                                    static_cast<double>(row.weights)),
                          fmt::format("{:.2e}", row.rmse), fmt::format("{:+.1e}", row.bias.mean),
                          fmt::format("{:.0e}", row.bias.sign_test_p)});
  }
  return table;
}

const Row& row_of(const std::vector<Row>& rows, Scores scores, int offset, double tau) {
  return *std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.scores == scores && row.offset_log2 == offset && row.tau == tau;
  });
}

ClaimResult concluded(const std::vector<Row>& rows) {
  bool saturates = true;
  bool biased = true;
  bool zero_is_safe = true;
  for (const Scores scores : {Scores::independent, Scores::increasing}) {
    const Row& never = row_of(rows, scores, 8, 0);
    const Row& always = row_of(rows, scores, 8, 8);
    zero_is_safe = zero_is_safe && never.overflows == 0;
    saturates = saturates && always.overflows > 0;
    biased = biased && always.bias.mean < never.bias.mean && always.bias.sign_test_p < 1e-6 &&
             always.bias.mean < 0;
  }
  ClaimResult result{table_of(rows), Verdict::refuted, ""};
  if (saturates && zero_is_safe) result.verdict = biased ? Verdict::confirmed : Verdict::qualified;
  const Row& independent = row_of(rows, Scores::independent, 8, 8);
  const Row& increasing = row_of(rows, Scores::increasing, 8, 8);
  const Row& safe = row_of(rows, Scores::increasing, 8, kSafe);
  const Row& without_offset = row_of(rows, Scores::increasing, 0, 8);
  result.argument = fmt::format(
      "With tau = 0 weights end at 2^8 and {}; with tau = 8 they may reach 65536 and {} above 448. "
      "The row sums keep what the weights lose, so outputs shrink: by {:.1e} of themselves where "
      "scores are independent with std 1 and by {:.2f} where they increase, against {:.1e} and "
      "{:.1e} with tau = 0, which tensor-core sums that keep 14 bits cut off. What exceeds is "
      "offset + tau > log2 448 = 8.81: tau = {} with the offset leaves "
      "{} saturated weights and tau = 8 without it {}, at an error of {:.1f} times that of "
      "tau = 0 with it.",
      zero_is_safe ? "none saturates" : "some saturate", saturates ? "saturate" : "stay not all",
      -independent.bias.mean, -increasing.bias.mean,
      -row_of(rows, Scores::independent, 8, 0).bias.mean,
      -row_of(rows, Scores::increasing, 8, 0).bias.mean, kSafe, safe.overflows,
      without_offset.overflows, without_offset.rmse / row_of(rows, Scores::increasing, 8, 0).rmse);
  return result;
}

}  // namespace

ClaimResult threshold_saturates_fp8(const ParallelFor& parallel_for) {
  std::vector<Row> rows;
  for (const Scores scores : {Scores::independent, Scores::increasing}) {
    for (const double tau : {0.0, kSafe, 8.0}) {
      rows.push_back({.scores = scores, .offset_log2 = 8, .tau = tau});
    }
    rows.push_back({.scores = scores, .offset_log2 = 0, .tau = 8});
  }
  parallel_for(static_cast<Index>(rows.size()),
               [&](Index part) { observe(rows[static_cast<std::size_t>(part)]); });
  return concluded(rows);
}

}  // namespace flashbound
