// Logits of query-key pairs, as balls and exactly.
//
// A pair whose q.k is not finite in IEEE arithmetic enters its row as the reference has it: NaN and
// +inf make the row NaN, -inf is a weight of 0, and a softcap turns an infinity into its limit.
#pragma once

#include "core/exact/ball.hpp"
#include "core/query_block.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace flashbound {

// How a pair enters its row; `vanishing` is a visible logit of -inf, `undefined` one of NaN or inf.
enum class Pair : std::uint8_t { hidden, finite, vanishing, undefined };

// Rows of a tensor and their balls, in which numbers that are not finite are 0.
struct Operand {
  RowMatrix values;
  BallMatrix balls;
  bool finite = true;
};
Operand operand(RowMatrix values);
BallMatrix balls_of(const RowMatrix& values);

// Some queries against neighbouring keys.
struct PairLogits {
  BallMatrix logits;
  BallMatrix slopes;  // 1 - tanh^2, for gradients under a softcap
  std::vector<Pair> pairs;

  PairLogits(Index queries, Index keys, bool with_slopes)
      : logits(queries, keys),
        slopes(with_slopes ? BallMatrix(queries, keys) : BallMatrix()),
        pairs(static_cast<std::size_t>(queries * keys), Pair::hidden) {}
  Pair pair(Index r, Index c) const {
    return pairs[static_cast<std::size_t>(r * logits.cols() + c)];
  }
};

// Fills the columns from `column` on with the logits of queries `rows` and the keys of a block.
void fill_logits(const Head& head, Interval rows, const Block& keys, const Operand& q,
                 const Operand& k, Index column, slong precision, PairLogits& result);

// softcap tanh(capped / softcap) + plain, both parts exact. `capped` is 0 without a softcap, so
// that equal parts are equal logits, and unequal parts unequal ones where there is no softcap.
struct ExactLogit {
  Dyadic capped;
  Dyadic plain;
  friend bool operator==(const ExactLogit& a, const ExactLogit& b) {
    return a.capped == b.capped && a.plain == b.plain;
  }
  friend bool operator<(const ExactLogit& a, const ExactLogit& b) {
    return a.capped == b.capped ? a.plain < b.plain : a.capped < b.capped;
  }
};
Ball ball_of(const ExactLogit& logit, double softcap, slong precision);

// The keys of positive weight that a query sees, and their logits.
struct ExactRow {
  std::vector<Index> keys;
  std::vector<ExactLogit> logits;
};
// The row must have no undefined pair.
ExactRow exact_row(const Head& head, Index query);

// Exact q.k over finite numbers.
Dyadic exact_product(const Eigen::Ref<const Eigen::RowVectorXd>& a,
                     const Eigen::Ref<const Eigen::RowVectorXd>& b);

// Whether all pairs of a row have the same exact logit, the sink included, without computing more
// of them than that takes.
bool has_equal_logits(const Head& head, Index query);

}  // namespace flashbound
