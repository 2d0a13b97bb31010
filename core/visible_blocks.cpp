#include "core/visible_blocks.hpp"

#include "core/floor_sum.hpp"

#include <algorithm>
#include <vector>

namespace flashbound {
namespace {

// The two edges of a band, in blocks. Query r sees the keys [r + d - L, r + d + R] within the
// sequence, d = Sk - Sq. Block i holds the queries [i Bq, (i + 1) Bq), so that its first key is
// that of its first query and its last key that of its last query:
//   low(i)  = floor((i Bq + d - L) / Bkv),              cut to [0, Tc]
//   high(i) = ceil(((i + 1) Bq + d + R) / Bkv),         cut to [0, Tc]
// and it sees the blocks [low(i), high(i)). A ragged last block needs no care: the last query
// faces the last key, so that high is cut to Tc there anyway. Both edges never decrease.
struct BandEdges {
  explicit BandEdges(const Schedule& s)
      : block_q(s.tile.block_q),
        block_kv(s.tile.block_kv),
        seqlen_kv(s.shape.seqlen_kv),
        tc((seqlen_kv + block_kv - 1) / block_kv) {
    const Index d = seqlen_kv - s.shape.seqlen_q;
    low_offset = d - reach(s.mask.window_left, s.shape);
    high_offset = block_q + d + reach(s.mask.window_right, s.shape) + block_kv - 1;
  }

  Index edge(Index i, Index offset) const {
    const Int128 block = floor_div(Int128{i} * block_q + offset, block_kv);
    return static_cast<Index>(std::clamp<Int128>(block, 0, tc));
  }
  Index low(Index i) const { return edge(i, low_offset); }
  Index high(Index i) const { return edge(i, high_offset); }
  Index count(Index i) const { return high(i) - low(i); }
  // Keys in the blocks [low, high).
  Index keys(Index i) const {
    return std::min(high(i) * block_kv, seqlen_kv) - std::min(low(i) * block_kv, seqlen_kv);
  }

  // Sum of an edge over the query blocks [begin, end).
  Int128 sum(Index begin, Index end, Index offset) const {
    return clamped_floor_sum(end - begin, block_q, Int128{begin} * block_q + offset, block_kv, tc);
  }
  // Sum of count(i) over [begin, end).
  Int128 counts(Index begin, Index end) const {
    return sum(begin, end, high_offset) - sum(begin, end, low_offset);
  }
  // First query block whose edge reaches `bound`, within [begin, end].
  Index first(Index begin, Index end, Index offset, Index bound) const {
    return begin + static_cast<Index>(first_at_least(bound, end - begin, block_q,
                                                     Int128{begin} * block_q + offset, block_kv));
  }

  Index block_q, block_kv, seqlen_kv, tc;
  Index low_offset = 0, high_offset = 0;
};

// Largest count(i) for i in [begin, end). While low is cut to 0 the count grows with high; once
// high is cut to Tc it falls with low. Between, both are floors of lines of one slope at a fixed
// distance, so that counts differ by at most one and the largest is the average rounded up.
Index count_max(const BandEdges& edges, Index begin, Index end) {
  const Index leaves_zero = edges.first(begin, end, edges.low_offset, 0);
  const Index reaches_top =
      std::max(leaves_zero, edges.first(begin, end, edges.high_offset, edges.tc));
  Index most = 0;
  if (leaves_zero > begin) most = edges.count(leaves_zero - 1);
  if (reaches_top > leaves_zero) {
    const Int128 average =
        ceil_div(edges.counts(leaves_zero, reaches_top), reaches_top - leaves_zero);
    most = std::max(most, static_cast<Index>(average));
  }
  if (reaches_top < end) most = std::max(most, edges.count(reaches_top));
  return most;
}

// The query blocks [begin, end), all of `rows` queries.
QBlockClass band_class(const BandEdges& edges, Index rows, Index begin, Index end) {
  if (begin == end) return {};
  QBlockClass result{.rows = rows};
  result.kv_blocks_max = count_max(edges, begin, end);
  // Their keys have no holes, and of any run of blocks the first is no smaller than the others.
  const Index first = edges.low(begin);
  if (result.kv_blocks_max > 0) {
    result.kv_block_rows = std::min(edges.block_kv, edges.seqlen_kv - first * edges.block_kv);
  }
  result.some_see_nothing = edges.count(begin) == 0;  // only leading queries can see nothing
  return result;
}

// Without a mask every block of queries sees every block of keys.
VisibleBlocks everything_visible(const Shape& shape, const Tile& tile) {
  const Partition queries{shape.seqlen_q, tile.block_q};
  const Partition keys{shape.seqlen_kv, tile.block_kv};
  const auto its = [&](Index rows) {
    return QBlockClass{.rows = rows,
                       .kv_blocks_max = keys.count(),
                       .kv_block_rows = std::min(tile.block_kv, shape.seqlen_kv),
                       .some_see_nothing = shape.seqlen_kv == 0};
  };
  VisibleBlocks result;
  if (shape.seqlen_q >= tile.block_q) result.classes[0] = its(tile.block_q);
  if (queries.ragged() > 0) result.classes[1] = its(queries.ragged());
  if (shape.seqlen_kv > 0) result.rows_seeing = Elements(shape.seqlen_q);
  result.row_visits = keys.count() * Elements(shape.seqlen_q);
  result.key_visits = queries.count() * Elements(shape.seqlen_kv);
  result.scores = shape.seqlen_q * Elements(shape.seqlen_kv);
  return result;
}

VisibleBlocks visible_in_band(const Schedule& schedule) {
  const BandEdges edges(schedule);
  const Index seqlen_q = schedule.shape.seqlen_q;
  const Index block_q = edges.block_q;
  const Index whole = seqlen_q / block_q;
  const Index ragged = seqlen_q % block_q;
  const Index count = whole + (ragged > 0 ? 1 : 0);

  VisibleBlocks result;
  result.classes = {band_class(edges, block_q, 0, whole), band_class(edges, ragged, whole, count)};
  if (edges.tc == 0) return result;

  const Index blind = edges.first(0, count, edges.high_offset, 1);
  result.rows_seeing = Elements(seqlen_q - std::min(blind * block_q, seqlen_q));

  // c_i = high(i) Bkv - low(i) Bkv, less what the last block lacks wherever it is seen.
  const Int128 lacking = edges.tc * edges.block_kv - edges.seqlen_kv;
  const auto keys = [&](Index end) {
    const Int128 see_last = end - edges.first(0, end, edges.high_offset, edges.tc);
    return Elements(checked_sub(checked_mul(edges.block_kv, edges.counts(0, end)),
                                checked_mul(lacking, see_last)));
  };
  result.key_visits = keys(count);
  result.row_visits = block_q * Elements(edges.counts(0, whole));
  result.scores = block_q * keys(whole);
  if (ragged > 0) {
    result.row_visits += ragged * Elements(edges.count(whole));
    result.scores += ragged * Elements(edges.keys(whole));
  }
  return result;
}

// Blocks of keys that the queries `rows` of one row of mask cells see, appended as runs.
void append_runs(const Schedule& schedule, Interval rows, std::vector<Interval>& runs) {
  const BlockMaskView& cells = schedule.mask.blocks;
  const Shape& shape = schedule.shape;
  const Index d = shape.seqlen_kv - shape.seqlen_q;
  const Index begin = std::max<Index>(0, rows.begin + d - reach(schedule.mask.window_left, shape));
  const Index end =
      std::min(shape.seqlen_kv, rows.end + d + reach(schedule.mask.window_right, shape));
  for (Index c = begin / cells.block_kv; c * cells.block_kv < end; ++c) {
    if (!cells.cell(rows.begin / cells.block_q, c)) continue;
    const Index first = std::max(begin, c * cells.block_kv);
    const Index last = std::min(end, (c + 1) * cells.block_kv) - 1;
    runs.push_back({first / schedule.tile.block_kv, last / schedule.tile.block_kv + 1});
  }
}

VisibleBlocks visible_in_block_mask(const Schedule& schedule) {
  const Index seqlen_q = schedule.shape.seqlen_q;
  const Index seqlen_kv = schedule.shape.seqlen_kv;
  const Index block_q = schedule.tile.block_q;
  const Index block_kv = schedule.tile.block_kv;
  const Index strip = schedule.mask.blocks.block_q;

  VisibleBlocks result;
  std::vector<Interval> runs;
  for (Index r0 = 0; r0 < seqlen_q; r0 += block_q) {
    const Index r1 = std::min(r0 + block_q, seqlen_q);
    runs.clear();
    for (Index r = r0; r < r1; r = (r / strip + 1) * strip) {
      append_runs(schedule, {r, std::min((r / strip + 1) * strip, r1)}, runs);
    }
    std::sort(runs.begin(), runs.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });

    Index blocks = 0;
    Index keys = 0;
    Index done = 0;  // blocks below it are counted
    for (const Interval& run : runs) {
      const Index first = std::max(run.begin, done);
      if (run.end <= first) continue;
      blocks += run.end - first;
      keys += std::min(run.end * block_kv, seqlen_kv) - first * block_kv;
      done = run.end;
    }
    const Index rows = r1 - r0;
    if (blocks > 0) result.rows_seeing += Elements(rows);
    result.row_visits += rows * Elements(blocks);
    result.key_visits += Elements(keys);
    result.scores += rows * Elements(keys);

    QBlockClass& its = result.classes[rows == block_q ? 0 : 1];
    its.rows = rows;
    its.kv_blocks_max = std::max(its.kv_blocks_max, blocks);
    // The first block seen is no smaller than the others.
    if (blocks > 0) {
      const Index first = runs.front().begin * block_kv;
      its.kv_block_rows = std::max(its.kv_block_rows, std::min(block_kv, seqlen_kv - first));
    }
    its.some_see_nothing = its.some_see_nothing || blocks == 0;
  }
  return result;
}

}  // namespace

VisibleBlocks visible_blocks(const Schedule& schedule) {
  if (schedule.mask.blocks.present()) return visible_in_block_mask(schedule);
  const bool windowed = schedule.mask.window_left >= 0 || schedule.mask.window_right >= 0;
  return windowed ? visible_in_band(schedule) : everything_visible(schedule.shape, schedule.tile);
}

}  // namespace flashbound
