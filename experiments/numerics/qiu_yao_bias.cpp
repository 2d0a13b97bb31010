// The mechanism. V_1 and V_2 of one sign, both weighted by exactly 1, are multiples of the spacing
// of bf16 in their binade; so their sum in the binade above lies on a number of bf16 or on a tie,
// each as often. The other weights add a little of the same sign. It takes every tie across, away
// from zero, by half an ulp; the numbers it leaves stay, an error by that little. So errors of both
// signs are equally frequent, and their mean is away from zero: a sign test of single outputs sees
// nothing, one of the rows' means does.
#include "experiments/numerics/qiu_yao_claims.hpp"
#include "experiments/numerics/qiu_yao_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace flashbound {
namespace {

constexpr double kBiased = 1e-6;    // sign-test p-values below it: a bias
constexpr double kUnbiased = 1e-3;  // above it: none that shows

struct Case {
  TiedRows rows{};
  RowErrors errors{};

  bool outward() const { return errors.row_means.mean < 0 && p() < kBiased; }
  double p() const { return errors.row_means.sign_test_p; }
  double mean() const { return errors.row_means.mean; }
};

std::vector<Case> cases() {
  using enum RoundedProduct;
  std::vector<Case> all;
  for (const Index ties : {2, 3, 4}) all.push_back({{.product = once, .ties = ties}, {}});
  all.push_back({{.product = once, .ties = 1}, {}});
  all.push_back({{.product = once, .shift = Shift::avoid_one}, {}});
  for (const double gap : {16.0, 8.0, 6.0, 4.0}) {
    all.push_back({{.product = once, .gap = gap}, {}});
  }
  all.push_back({{.product = every_addition}, {}});
  all.push_back({{.product = after_division}, {}});
  return all;
}

ClaimTable table_of(const std::vector<Case>& all) {
  ClaimTable table{
      {"rounded_to_bf16", "tied_maxima", "logit_gap", "largest_weight", "mean_error_ulp",
       "outward_percent", "row_mean_sign_test_p", "output_sign_test_p"},
      {}};
  for (const Case& each : all) {
    const Bias& outputs = each.errors.outputs;
    const auto count = static_cast<double>(outputs.positive + outputs.negative + outputs.zero);
    table.rows.push_back(
        {std::string(name(each.rows.product)), fmt::format("{}", each.rows.ties),
         fmt::format("{}", each.rows.gap), fmt::format("{:.4g}", each.errors.largest_weight),
         fmt::format("{:+.4f}", outputs.mean),
         fmt::format("{:.1f}", 100 * static_cast<double>(outputs.negative) / count),
         fmt::format("{:.1e}", each.p()), fmt::format("{:.1e}", outputs.sign_test_p)});
  }
  return table;
}

// The first case that matches.
template <class Matches>
const Case& find(const std::vector<Case>& all, Matches matches) {
  return *std::find_if(all.begin(), all.end(), matches);
}

std::string described(const Case& each) {
  const std::string figures = fmt::format("({:+.3f} ulp, p = {:.1e})", each.mean(), each.p());
  if (each.p() > kUnbiased) return "does not lean " + figures;
  return fmt::format("leans {} {}", each.mean() < 0 ? "outwards" : "inwards", figures);
}

ClaimResult concluded(const std::vector<Case>& all) {
  using enum RoundedProduct;
  const auto as_published = [](const Case& each) {
    return each.rows.product == once && each.rows.ties >= 2 && each.rows.gap == 12 &&
           each.rows.shift == Shift::maximum;
  };
  bool biased = true;
  for (const Case& each : all) biased = biased && (!as_published(each) || each.outward());
  const Case& two = find(all, as_published);
  const Case& below_one =
      find(all, [](const Case& each) { return each.rows.shift == Shift::avoid_one; });
  const Case& single = find(all, [](const Case& each) { return each.rows.ties == 1; });
  const Case& near = find(all, [](const Case& each) { return each.rows.gap == 4; });
  const Case& stepwise =
      find(all, [](const Case& each) { return each.rows.product == every_addition; });
  const Case& divided =
      find(all, [](const Case& each) { return each.rows.product == after_division; });
  const bool vanishes = below_one.p() > kUnbiased;
  const bool always = near.outward() && stepwise.outward() && divided.outward();
  ClaimResult result{table_of(all), Verdict::refuted, ""};
  if (biased && vanishes) result.verdict = always ? Verdict::confirmed : Verdict::qualified;
  result.argument = fmt::format(
      "Where the unnormalised P V is accumulated in fp32 and rounded to bf16 once, two weights of "
      "1 give a mean error of {:+.3f} ulp (V < 0: to larger magnitudes), sign test of row means "
      "p = {:.1e}; without a weight of 1 it {}. The sum of two bf16 numbers is a bf16 number or a "
      "tie, and the small rest of the row takes ties outwards; signs of single outputs are "
      "balanced (p = {:.2g}), their sizes are not. So it takes a repeated maximum (a single one "
      "{}), a rest of the row that is small against an ulp (with a logit gap of 4 it {}) and that "
      "rounding: accumulated in bf16 throughout, P V {}, since the rest is lost term by term; "
      "divided by the row sum in fp32 before it is rounded, as in FlashAttention kernels, it {}.",
      two.mean(), two.p(), described(below_one), two.errors.outputs.sign_test_p, described(single),
      described(near), described(stepwise), described(divided));
  return result;
}

}  // namespace

ClaimResult tied_maxima_bias(const ParallelFor& parallel_for) {
  std::vector<Case> all = cases();
  for (Case& each : all) each.errors = tied_row_errors(each.rows, parallel_for);
  return concluded(all);
}

}  // namespace flashbound
