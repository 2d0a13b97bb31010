#include "core/gradients.hpp"

#include "core/reference.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace flashbound {
namespace {

// What a row of P needs beside its logits, and the gradients of its logits beside P and dP.
struct RowStatistic {
  double maximum = 0;
  double sum = 0;    // of exp(logit - maximum)
  double delta = 0;  // of P o dP
};

// A query head together with dO.
struct Pair {
  Head head;
  TensorView<const double> grad_o;
};

// P, dP and d logit / d (q k^T) of some queries over one block of keys. P and the slopes are 0
// where the mask hides the pair.
struct ScoreTile {
  Interval rows{};
  Block keys{};
  RowMatrix p;
  RowMatrix dp;
  RowMatrix slopes;
};

bool visible(const Head& head, const ScoreTile& tile, Index r, Index c) {
  return tile.keys.coverage == Coverage::full ||
         head.schedule().visible(tile.rows.begin + r, tile.keys.span.begin + c);
}

ScoreTile score_tile(const Pair& pair, const RowMatrix& q, Interval rows, const Block& keys,
                     const RowMatrix& grad_o, const RowStatistic* statistics) {
  ScoreTile tile{rows, keys, {}, {}, {}};
  tile.p = block_logits(pair.head, q, rows, keys, &tile.slopes);
  for (Index r = 0; r < tile.p.rows(); ++r) {
    const RowStatistic& row = statistics[r];
    for (Index c = 0; c < tile.p.cols(); ++c) {
      // Also where the maximum is -inf, whose difference with itself is NaN.
      const bool none = tile.p(r, c) == -std::numeric_limits<double>::infinity();
      tile.p(r, c) = none ? 0.0 : std::exp(tile.p(r, c) - row.maximum) / row.sum;
    }
  }
  tile.dp.noalias() = grad_o * pair.head.values(keys.span).transpose();
  return tile;
}

// dS = P o (dP - delta) o slopes over the visible pairs, and 0 elsewhere.
RowMatrix score_gradients(const Head& head, const ScoreTile& tile, const RowStatistic* statistics) {
  RowMatrix ds = RowMatrix::Zero(tile.p.rows(), tile.p.cols());
  for (Index r = 0; r < ds.rows(); ++r) {
    for (Index c = 0; c < ds.cols(); ++c) {
      if (!visible(head, tile, r, c)) continue;
      ds(r, c) = tile.p(r, c) * (tile.dp(r, c) - statistics[r].delta) * tile.slopes(r, c);
    }
  }
  return ds;
}

// Adds weights x, where weights are 0 for hidden pairs and x has a row for each key.
void add_over_keys(const Head& head, const ScoreTile& tile, const RowMatrix& weights,
                   const RowMatrix& x, RowMatrix& sum) {
  if (x.allFinite()) {
    sum.noalias() += weights * x;
    return;
  }
  for (Index r = 0; r < weights.rows(); ++r) {
    for (Index c = 0; c < weights.cols(); ++c) {
      if (visible(head, tile, r, c)) sum.row(r) += weights(r, c) * x.row(c);
    }
  }
}

// Adds weights^T x, where x has a row for each query.
void add_over_queries(const Head& head, const ScoreTile& tile, const RowMatrix& weights,
                      const RowMatrix& x, RowMatrix& sum) {
  if (x.allFinite()) {
    sum.noalias() += weights.transpose() * x;
    return;
  }
  for (Index r = 0; r < weights.rows(); ++r) {
    for (Index c = 0; c < weights.cols(); ++c) {
      if (visible(head, tile, r, c)) sum.row(c) += weights(r, c) * x.row(r);
    }
  }
}

// First half: one block of queries against the keys it sees gives its rows of dQ, and the
// statistics of its rows.
RowMatrix query_gradients(const Pair& pair, Index i, RowStatistic* statistics) {
  QueryBlock block = query_block(pair.head, i);
  for (Index r = 0; r < block.logits.rows(); ++r) {
    const RowStatistics row = exponentiate_row(block.logits.row(r), pair.head.sink());
    statistics[r] = {row.maximum, row.sum, 0};
  }
  block.logits.resize(0, 0);
  const RowMatrix q = pair.head.queries(block.rows);
  const RowMatrix grad_o = pair.head.query_rows(pair.grad_o, block.rows);
  std::vector<ScoreTile> tiles;
  for (const Block& keys : block.blocks) {
    tiles.push_back(score_tile(pair, q, block.rows, keys, grad_o, statistics));
    const ScoreTile& tile = tiles.back();
    for (Index r = 0; r < tile.p.rows(); ++r) {
      for (Index c = 0; c < tile.p.cols(); ++c) {
        if (visible(pair.head, tile, r, c)) statistics[r].delta += tile.p(r, c) * tile.dp(r, c);
      }
    }
  }
  RowMatrix dq = RowMatrix::Zero(block.rows.size(), pair.head.problem().head_dim);
  for (const ScoreTile& tile : tiles) {
    const RowMatrix ds = score_gradients(pair.head, tile, statistics);
    add_over_keys(pair.head, tile, ds, pair.head.keys(tile.keys.span), dq);
  }
  return dq;
}

struct KeyGradients {
  RowMatrix k;
  RowMatrix v;
};

// Second half: one block of keys against the queries that see it gives their share of its rows of
// dK and dV. `statistics` has all rows of the head.
KeyGradients key_gradients(const Pair& pair, Index j, const RowStatistic* statistics) {
  const Schedule& schedule = pair.head.schedule();
  const Interval span = schedule.kv_rows(j);
  KeyGradients sum{RowMatrix::Zero(span.size(), schedule.shape.head_dim),
                   RowMatrix::Zero(span.size(), schedule.shape.head_dim_v)};
  for (const Block queries : schedule.q_blocks(j)) {
    const Interval rows = queries.span;
    const RowMatrix q = pair.head.queries(rows);
    const RowMatrix grad_o = pair.head.query_rows(pair.grad_o, rows);
    const RowStatistic* own = statistics + rows.begin;
    const ScoreTile tile = score_tile(pair, q, rows, {j, span, queries.coverage}, grad_o, own);
    add_over_queries(pair.head, tile, tile.p, grad_o, sum.v);
    const RowMatrix ds = score_gradients(pair.head, tile, own);
    add_over_queries(pair.head, tile, ds, q, sum.k);
  }
  return sum;
}

// One block of one head (of queries, or of keys) of one sequence: the unit of work.
struct Part {
  Index sequence = 0;
  Index head = 0;
  Index block = 0;
};

std::vector<Part> parts_of(const Problem& problem, Index heads, Index Sequence::*length,
                           Index block_size) {
  std::vector<Part> parts;
  for (Index s = 0; s < sequence_count(problem); ++s) {
    const Index blocks = Partition{sequence(problem, s).*length, block_size}.count();
    for (Index head = 0; head < heads; ++head) {
      for (Index block = 0; block < blocks; ++block) parts.push_back({s, head, block});
    }
  }
  return parts;
}

void scatter(const RowMatrix& rows, const TensorView<double>& tensor, Index batch, Index head,
             Index first) {
  for (Index r = 0; r < rows.rows(); ++r) {
    for (Index c = 0; c < rows.cols(); ++c) tensor(batch, head, first + r, c) = rows(r, c);
  }
}

void validate_all(const Problem& problem, const Inputs& inputs,
                  const TensorView<const double>& grad_o) {
  validate(problem, inputs);
  require_shape("grad_o", grad_o,
                {problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v});
}

}  // namespace

Gradients reference_gradients(const Problem& problem, const Inputs& inputs,
                              const TensorView<const double>& grad_o,
                              const ParallelFor& parallel_for) {
  validate(problem, Emptiness::allowed);
  validate_all(problem, inputs, grad_o);
  Gradients result{Tensor<double>(inputs.q.shape), Tensor<double>(inputs.k.shape),
                   Tensor<double>(inputs.v.shape)};
  const TensorView<double> q = result.q.view();
  const TensorView<double> k = result.k.view();
  const TensorView<double> v = result.v.view();
  Tensor<RowStatistic> statistics({problem.batch, problem.num_heads_q, problem.seqlen_q, 1});
  const TensorView<RowStatistic> rows = statistics.view();

  const std::vector<Part> queries =
      parts_of(problem, problem.num_heads_q, &Sequence::seqlen_q, kReferenceTile.block_q);
  parallel_for(static_cast<Index>(queries.size()), [&](Index index) {
    const Part& part = queries[static_cast<std::size_t>(index)];
    const Sequence at = sequence(problem, part.sequence);
    const Index first = at.q_begin + part.block * kReferenceTile.block_q;
    const Pair pair{Head(problem, inputs, at, part.head), grad_o};
    scatter(query_gradients(pair, part.block, &rows(at.batch, part.head, first, 0)), q, at.batch,
            part.head, first);
  });

  const std::vector<Part> keys =
      parts_of(problem, problem.num_heads_kv, &Sequence::seqlen_kv, kReferenceTile.block_kv);
  parallel_for(static_cast<Index>(keys.size()), [&](Index index) {
    const Part& part = keys[static_cast<std::size_t>(index)];
    const Sequence at = sequence(problem, part.sequence);
    const Index first = at.kv_begin + part.block * kReferenceTile.block_kv;
    const Index ratio = q_heads_per_kv_head(problem);
    KeyGradients sum;
    for (Index head = part.head * ratio; head < (part.head + 1) * ratio; ++head) {
      const Pair pair{Head(problem, inputs, at, head), grad_o};
      const RowStatistic* own = rows.data + at.batch * rows.strides[0] + head * rows.strides[1] +
                                at.q_begin * rows.strides[2];
      const KeyGradients share = key_gradients(pair, part.block, own);
      if (head == part.head * ratio) {
        sum = share;
      } else {
        sum.k += share.k;
        sum.v += share.v;
      }
    }
    scatter(sum.k, k, at.batch, part.head, first);
    scatter(sum.v, v, at.batch, part.head, first);
  });
  return result;
}

HeadGradients reference_gradients_head(const Problem& problem, const Inputs& inputs,
                                       const TensorView<const double>& grad_o,
                                       const Sequence& sequence, Index head,
                                       const ParallelFor& parallel_for) {
  validate_all(problem, inputs, grad_o);
  const Pair pair{Head(problem, inputs, sequence, head), grad_o};
  const Schedule& schedule = pair.head.schedule();
  HeadGradients result{RowMatrix(sequence.seqlen_q, problem.head_dim),
                       RowMatrix(sequence.seqlen_kv, problem.head_dim),
                       RowMatrix(sequence.seqlen_kv, problem.head_dim_v)};
  std::vector<RowStatistic> statistics(static_cast<std::size_t>(sequence.seqlen_q));
  parallel_for(schedule.q_block_count(), [&](Index i) {
    const Interval rows = schedule.q_rows(i);
    result.q.middleRows(rows.begin, rows.size()) =
        query_gradients(pair, i, statistics.data() + rows.begin);
  });
  parallel_for(schedule.kv_block_count(), [&](Index j) {
    const Interval keys = schedule.kv_rows(j);
    const KeyGradients own = key_gradients(pair, j, statistics.data());
    result.k.middleRows(keys.begin, keys.size()) = own.k;
    result.v.middleRows(keys.begin, keys.size()) = own.v;
  });
  return result;
}

}  // namespace flashbound
