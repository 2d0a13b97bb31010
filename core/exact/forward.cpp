#include "core/exact/forward.hpp"

#include "core/exact/decide.hpp"
#include "core/exact/rounding.hpp"
#include "core/exact/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace flashbound {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Weights times values, not yet divided by the sums of weights.
BallMatrix weighted_values(const Head& head, const WeightBlock& block, slong precision) {
  const Index columns = head.problem().head_dim_v;
  BallMatrix sum(block.rows.size(), columns);
  for (const Block& keys : block.blocks) {
    const BallMatrix v = balls_of(head.values(keys.span).transpose());
    for (Index r = 0; r < sum.rows(); ++r) {
      arb_srcptr weights = block.pairs.logits(r, block.column(keys));
      for (Index c = 0; c < columns; ++c) {
        arb_dot(sum(r, c), sum(r, c), 0, weights, 1, v(c, 0), 1, v.cols(), precision);
      }
    }
  }
  return sum;
}

// What the values that are not finite make of O: a matrix of 0, infinities and NaN. Empty when all
// values are finite.
RowMatrix non_finite_values(const Head& head, const WeightBlock& block) {
  RowMatrix sum;
  for (const Block& keys : block.blocks) {
    const RowMatrix v = head.values(keys.span);
    if (v.allFinite()) continue;
    if (sum.size() == 0) sum = RowMatrix::Zero(block.rows.size(), v.cols());
    for (Index r = 0; r < sum.rows(); ++r) {
      for (Index j = 0; j < v.rows(); ++j) {
        const Pair pair = block.pairs.pair(r, block.column(keys) + j);
        if (pair == Pair::hidden) continue;
        const double weight = pair == Pair::finite ? 1 : 0;
        for (Index c = 0; c < v.cols(); ++c) {
          if (!std::isfinite(v(j, c))) sum(r, c) += weight * v(j, c);
        }
      }
    }
  }
  return sum;
}

// Writes the rows of a block, asking for decisions where a ball says too little.
class BlockWriter {
 public:
  BlockWriter(const Head& head, const WeightBlock& weights, const ExactOptions& options)
      : head_(&head), weights_(&weights), options_(options) {
    const Index rows = weights.rows.size();
    block_.rows = weights.rows;
    block_.o = RowMatrix::Zero(rows, head.problem().head_dim_v);
    block_.lse = Eigen::VectorXd::Constant(rows, -kInfinity);
  }

  void write_row(Index r, const BallMatrix& products, const RowMatrix& special) {
    const auto at = static_cast<std::size_t>(r);
    if (weights_->undefined[at]) {
      block_.o.row(r).setConstant(kNan);
      block_.lse(r) = kNan;
      return;
    }
    const Ball& sum = weights_->sums[at];
    const bool sees_nothing = arb_is_zero(sum.get()) != 0;
    decider_.reset();
    if (!sees_nothing) write_lse(r, sum);
    for (Index c = 0; c < products.cols(); ++c) {
      if (special.size() > 0 && special(r, c) != 0) {
        block_.o(r, c) = special(r, c);
      } else if (!sees_nothing) {
        write_o(r, c, products(r, c), sum);
      }
    }
  }

  ExactBlock take() { return std::move(block_); }

 private:
  void write_lse(Index r, const Ball& sum) {
    const slong precision = options_.first_precision;
    Ball lse;
    arb_log(lse.get(), sum.get(), precision);
    arb_add(lse.get(), lse.get(), weights_->shifts[static_cast<std::size_t>(r)].get(), precision);
    if (settle(lse.get(), block_.lse(r))) return;
    if (!settle(decider(r).lse(), block_.lse(r))) block_.undecided_lse.push_back(r);
  }
  void write_o(Index r, Index c, arb_srcptr product, const Ball& sum) {
    Ball o;
    arb_div(o.get(), product, sum.get(), options_.first_precision);
    if (settle(o.get(), block_.o(r, c))) return;
    if (!settle(decider(r).o(c), block_.o(r, c))) {
      block_.undecided_o.push_back(r * block_.o.cols() + c);
    }
  }
  bool settle(arb_srcptr ball, double& result) {
    const Rounding rounding = round_ball(ball);
    return rounding.value && settle(Decision{rounding.value, options_.first_precision}, result);
  }
  bool settle(const Decision& decision, double& result) {
    block_.precision = std::max(block_.precision, decision.precision);
    result = decision.value.value_or(kNan);
    return decision.value.has_value();
  }
  const RowDecider& decider(Index r) {
    if (!decider_) decider_.emplace(*head_, block_.rows.begin + r, options_);
    return *decider_;
  }

  const Head* head_;
  const WeightBlock* weights_;
  ExactOptions options_;
  ExactBlock block_;
  std::optional<RowDecider> decider_;  // of the row being written
};

}  // namespace

ExactBlock exact_block(const Head& head, Index i, const ExactOptions& options) {
  const slong precision = options.first_precision;
  const Schedule schedule = head.schedule().with_tile(kExactTile);
  const WeightBlock weights = weight_block(head, schedule, i, false, precision);
  const BallMatrix products = weighted_values(head, weights, precision);
  const RowMatrix special = non_finite_values(head, weights);
  BlockWriter writer(head, weights, options);
  for (Index r = 0; r < weights.rows.size(); ++r) writer.write_row(r, products, special);
  return writer.take();
}

}  // namespace flashbound
