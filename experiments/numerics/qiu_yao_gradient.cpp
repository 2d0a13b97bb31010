#include "core/float_format.hpp"
#include "core/query_block.hpp"
#include "experiments/numerics/qiu_yao_claims.hpp"
#include "experiments/random_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace flashbound {
namespace {

constexpr Index kDim = 32;
constexpr std::array<Index, 3> kLengths{64, 256, 1024};
constexpr std::array<double, 2> kScoreStds{1, 8};
constexpr Index kQueries = 64;
constexpr std::uint64_t kSeeds = 4;
constexpr double kRounding = 1e-9;  // below it the unexplained part is fp64 rounding

RowMatrix normal_matrix(std::mt19937_64& engine, Index rows, Index cols) {
  RowMatrix matrix(rows, cols);
  for (double& x : matrix.reshaped<Eigen::RowMajor>()) x = normal(engine);
  return matrix;
}

RowMatrix softmax(RowMatrix logits) {
  for (auto row : logits.rowwise()) {
    row = (row.array() - row.maxCoeff()).exp();
    row /= row.sum();
  }
  return logits;
}

// The largest over the seeds.
struct Row {
  double score_std = 0;
  Index n = 0;
  double identity_share = 0;  // of the difference that fp64 rounding admits
  double delta_error = 0;     // |delta_lp - delta_hp|
  double gradient_error = 0;  // |dQ_lp - dQ_hp| / |dQ_hp|, Frobenius norms
  double residual = 0;        // |dQ_hp - dQ_lp - scale diag(...) P K| / |dQ_hp - dQ_lp|
};

void observe(Row& row, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const double scale = row.score_std / std::sqrt(static_cast<double>(kDim));
  const RowMatrix q = normal_matrix(engine, kQueries, kDim);
  const RowMatrix k = normal_matrix(engine, row.n, kDim);
  const RowMatrix v = normal_matrix(engine, row.n, kDim);
  const RowMatrix d_o = normal_matrix(engine, kQueries, kDim);
  const RowMatrix p = softmax(scale * q * k.transpose());
  const RowMatrix o = p * v;
  const FloatFormat bf16 = float_format(NumberFormat::bf16);
  const RowMatrix o_lp = o.unaryExpr([&](double x) { return round_to(bf16, x); });
  const RowMatrix d_p = d_o * v.transpose();
  const Eigen::VectorXd of_weights = d_p.cwiseProduct(p).rowwise().sum();
  const Eigen::VectorXd delta_hp = d_o.cwiseProduct(o).rowwise().sum();
  const Eigen::VectorXd delta_lp = d_o.cwiseProduct(o_lp).rowwise().sum();
  // Each side rounds each of its n d products at most n + d times.
  const Eigen::VectorXd magnitude =
      (d_o.cwiseAbs() * v.cwiseAbs().transpose()).cwiseProduct(p).rowwise().sum();
  const double roundings = 2 * static_cast<double>(row.n + kDim) * 0x1p-53;
  row.identity_share = std::max(
      row.identity_share,
      ((delta_hp - of_weights).cwiseAbs().array() / magnitude.array()).maxCoeff() / roundings);
  const auto gradient = [&](const Eigen::VectorXd& delta) {
    const RowMatrix d_s = p.cwiseProduct(d_p.colwise() - delta);
    return RowMatrix(scale * d_s * k);
  };
  const RowMatrix d_q = gradient(delta_hp);
  const RowMatrix difference = d_q - gradient(delta_lp);
  const RowMatrix predicted = scale * (delta_lp - delta_hp).asDiagonal() * (p * k);
  row.delta_error = std::max(row.delta_error, (delta_lp - delta_hp).cwiseAbs().maxCoeff());
  row.gradient_error = std::max(row.gradient_error, difference.norm() / d_q.norm());
  row.residual = std::max(row.residual, (difference - predicted).norm() / difference.norm());
}

ClaimResult concluded(const std::vector<Row>& rows) {
  ClaimTable table{{"score_std", "n", "identity_share_of_fp64_rounding", "max_delta_error_bf16",
                    "dq_relative_error_bf16", "unexplained_part_of_dq_error"},
                   {}};
  double share = 0;
  double residual = 0;
  double low = 1;
  double high = 0;
  for (const Row& row : rows) {
    low = std::min(low, row.gradient_error);
    high = std::max(high, row.gradient_error);
    table.rows.push_back(
        {fmt::format("{}", row.score_std), fmt::format("{}", row.n),
         fmt::format("{:.1f}", row.identity_share), fmt::format("{:.1e}", row.delta_error),
         fmt::format("{:.1e}", row.gradient_error),
         row.residual < kRounding ? "rounding" : fmt::format("{:.0e}", row.residual)});
    share = std::max(share, row.identity_share);
    residual = std::max(residual, row.residual);
  }
  const bool identity = share <= 1;
  const bool explained = residual < kRounding;
  ClaimResult result{std::move(table), Verdict::refuted, ""};
  if (identity) result.verdict = explained ? Verdict::confirmed : Verdict::qualified;
  result.argument = fmt::format(
      "With O = P V in fp64 the two forms of delta {} by more than rounding admits. With O rounded "
      "to bf16, dQ_hp - dQ_lp and scale diag(delta_lp - delta_hp) P K differ by {} 1e-9 of their "
      "size: delta enters dS = P o (dP - delta) linearly, so the statement is an identity. The "
      "error of dQ is {:.1e} to {:.1e} of it here; rowsum(dP o P) is free of the error of O.",
      identity ? "never differ" : "differ", explained ? "less than" : "more than", low, high);
  return result;
}

}  // namespace

ClaimResult delta_identity(const ParallelFor& parallel_for) {
  std::vector<Row> rows;
  for (const double score_std : kScoreStds) {
    for (const Index n : kLengths) rows.push_back({.score_std = score_std, .n = n});
  }
  parallel_for(static_cast<Index>(rows.size()), [&](Index part) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      observe(rows[static_cast<std::size_t>(part)], seed);
    }
  });
  return concluded(rows);
}

}  // namespace flashbound
