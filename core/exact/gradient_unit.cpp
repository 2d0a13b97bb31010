#include "core/exact/gradient_unit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace flashbound {
namespace {

std::vector<bool> unusual_rows(const RowMatrix& matrix) {
  std::vector<bool> rows(static_cast<std::size_t>(matrix.rows()));
  for (Index r = 0; r < matrix.rows(); ++r) {
    rows[static_cast<std::size_t>(r)] = !matrix.row(r).allFinite();
  }
  return rows;
}

bool any(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

// The keys of a sequence with numbers that are not finite.
struct UnusualKeys {
  std::vector<bool> k, v;
};

void mark_row(const GradientUnit& unit, std::size_t n, Index i, const RowMatrix& q,
              const RowMatrix& grad_o, const UnusualKeys& unusual, NotFinite& result) {
  const Schedule& schedule = unit.heads[n].schedule();
  const Interval band = schedule.band().keys(i);
  bool weights = !q.row(i).allFinite();
  bool values = !grad_o.row(i).allFinite();
  std::vector<std::size_t> keys;
  for (Index j = band.begin; j < band.end; ++j) {
    if (!schedule.visible(i, j)) continue;
    keys.push_back(static_cast<std::size_t>(j));
    weights = weights || unusual.k[keys.back()];
    values = values || unusual.v[keys.back()];
  }
  if (keys.empty() || !(weights || values)) return;
  result.q[static_cast<std::size_t>(static_cast<Index>(n) * unit.at.seqlen_q + i)] = true;
  for (const std::size_t j : keys) {
    result.k[j] = true;
    for (Index c = 0; c < grad_o.cols(); ++c) {
      if (weights || !std::isfinite(grad_o(i, c))) result.v[j][static_cast<std::size_t>(c)] = true;
    }
  }
}

}  // namespace

RowMatrix GradientUnit::grad_rows(std::size_t n, Interval rows) const {
  RowMatrix matrix(rows.size(), grad_o.shape[3]);
  for (Index r = 0; r < matrix.rows(); ++r) {
    for (Index c = 0; c < matrix.cols(); ++c) {
      matrix(r, c) = grad_o(at.batch, query_head(n), at.q_begin + rows.begin + r, c);
    }
  }
  return matrix;
}

GradientUnit gradient_unit(const Problem& problem, const Inputs& inputs,
                           const TensorView<const double>& grad_o, const Sequence& at,
                           Index key_head) {
  GradientUnit unit{&problem, grad_o, at, key_head, {}};
  const Index heads = q_heads_per_kv_head(problem);
  for (Index n = 0; n < heads; ++n) {
    unit.heads.emplace_back(problem, inputs, at, key_head * heads + n);
  }
  return unit;
}

NotFinite not_finite(const GradientUnit& unit) {
  const Interval rows{0, unit.at.seqlen_q};
  const Interval keys{0, unit.at.seqlen_kv};
  const auto key_count = static_cast<std::size_t>(keys.size());
  const std::vector<bool> columns(static_cast<std::size_t>(unit.problem->head_dim_v), false);
  NotFinite result{std::vector<bool>(static_cast<std::size_t>(unit.row_count()), false),
                   std::vector<bool>(key_count, false),
                   std::vector<std::vector<bool>>(key_count, columns)};
  const UnusualKeys unusual{unusual_rows(unit.heads.front().keys(keys)),
                            unusual_rows(unit.heads.front().values(keys))};
  const bool unusual_keys = any(unusual.k) || any(unusual.v);
  for (std::size_t n = 0; n < unit.heads.size(); ++n) {
    const RowMatrix q = unit.heads[n].queries(rows);
    const RowMatrix grad_o = unit.grad_rows(n, rows);
    if (!unusual_keys && q.allFinite() && grad_o.allFinite()) continue;
    for (Index i = 0; i < rows.end; ++i) mark_row(unit, n, i, q, grad_o, unusual, result);
  }
  return result;
}

}  // namespace flashbound
