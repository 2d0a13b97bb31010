#include "core/bounds.hpp"

#include "core/floor_sum.hpp"
#include "core/visible_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace flashbound {
namespace {

// What one head of one sequence shows: elements of one column.
struct Seen {
  Elements rows{};   // queries that see some key
  Elements keys{};   // keys that some query sees
  Elements pairs{};  // visible query-key pairs
};

struct Window {
  Index d = 0;  // query r faces key r + d
  Index left = 0;
  Index right = 0;
};

Interval intersection(Interval a, Interval b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Queries whose window meets `keys`, and keys that the windows of `rows` meet. Neither has holes.
Interval rows_seeing(const Window& w, Interval keys) {
  return {keys.begin - w.d - w.right, keys.end - w.d + w.left};
}
Interval keys_seen(const Window& w, Interval rows) {
  return {rows.begin + w.d - w.left, rows.end + w.d + w.right};
}

// Pairs of rows x keys within the window: the sum over rows of the keys below its right edge less
// the keys left of its left edge, each edge a line of slope one cut to the rectangle.
Elements pairs_within(const Window& w, Interval rows, Interval keys) {
  const Int128 facing = Int128{rows.begin} + w.d - keys.begin;  // of the first query
  const auto keys_below = [&](Int128 edge) {
    return clamped_floor_sum(rows.size(), 1, edge, 1, keys.size());
  };
  return Elements(keys_below(facing + w.right + 1) - keys_below(facing - w.left));
}

// Adds intervals whose ends never decrease to the size of their union.
class UnionSize {
 public:
  void add(Interval interval) {
    if (interval.empty()) return;
    size_ += Interval{std::max(interval.begin, end_), interval.end}.size();
    end_ = std::max(end_, interval.end);
  }
  Index size() const { return size_; }

 private:
  Index end_ = 0;
  Index size_ = 0;
};

Seen seen_in_cells(const BlockMaskView& cells, const Window& window, const Shape& shape) {
  const Partition strips{shape.seqlen_q, cells.block_q};
  const Partition columns{shape.seqlen_kv, cells.block_kv};
  Seen seen;
  std::vector<UnionSize> column_keys(static_cast<std::size_t>(columns.count()));
  for (Index s = 0; s < strips.count(); ++s) {
    const Interval rows = strips.interval(s);
    UnionSize strip_rows;
    for (Index c = 0; c < columns.count(); ++c) {
      if (!cells.cell(s, c)) continue;
      const Interval keys = columns.interval(c);
      strip_rows.add(intersection(rows, rows_seeing(window, keys)));
      column_keys[static_cast<std::size_t>(c)].add(intersection(keys, keys_seen(window, rows)));
      seen.pairs += pairs_within(window, rows, keys);
    }
    seen.rows += Elements(strip_rows.size());
  }
  for (const UnionSize& keys : column_keys) seen.keys += Elements(keys.size());
  return seen;
}

Seen seen_by_head(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  const Window window{shape.seqlen_kv - shape.seqlen_q, reach(schedule.mask.window_left, shape),
                      reach(schedule.mask.window_right, shape)};
  if (shape.seqlen_q == 0 || shape.seqlen_kv == 0) return {};
  if (schedule.mask.blocks.present()) return seen_in_cells(schedule.mask.blocks, window, shape);
  const Interval rows{0, shape.seqlen_q};
  const Interval keys{0, shape.seqlen_kv};
  return {Elements(intersection(rows, rows_seeing(window, keys)).size()),
          Elements(intersection(keys, keys_seen(window, rows)).size()),
          pairs_within(window, rows, keys)};
}

// One head of every sequence.
Seen seen_by_head_of_each_sequence(const Problem& problem) {
  if (problem.cu_seqlens_q.empty()) {
    const Seen one = seen_by_head(schedule_for(problem, Tile{}, sequence(problem, 0)));
    return {problem.batch * one.rows, problem.batch * one.keys, problem.batch * one.pairs};
  }
  Seen total;
  for (Index s = 0; s < sequence_count(problem); ++s) {
    const Seen one = seen_by_head(schedule_for(problem, Tile{}, sequence(problem, s)));
    total.rows += one.rows;
    total.keys += one.keys;
    total.pairs += one.pairs;
  }
  return total;
}

}  // namespace

CompulsoryBound compulsory_bound(const Problem& problem, NumberFormat dtype, Pass pass) {
  const Seen seen = seen_by_head_of_each_sequence(problem);
  const Elements seen_rows = problem.num_heads_q * seen.rows;
  const Elements seen_keys = problem.num_heads_kv * seen.keys;
  CompulsoryBound bound{.q_read = problem.head_dim * seen_rows,
                        .k_read = problem.head_dim * seen_keys,
                        .v_read = problem.head_dim_v * seen_keys,
                        .element_bytes = byte_size(dtype)};
  if (pass == Pass::forward) {
    bound.o_written = problem.head_dim_v * seen_rows;
  } else {
    bound.grad_o_read = problem.head_dim_v * seen_rows;
    bound.grad_q_written = problem.head_dim * seen_rows;
    bound.grad_k_written = problem.head_dim * seen_keys;
    bound.grad_v_written = problem.head_dim_v * seen_keys;
  }
  return bound;
}

Elements visible_pairs(const Problem& problem) {
  return problem.num_heads_q * seen_by_head_of_each_sequence(problem).pairs;
}

Flops flops_useful(const Problem& problem, Pass pass) {
  const Int128 products = pass == Pass::forward ? 1 : 2;  // of either width
  const Int128 width = products * (problem.head_dim + problem.head_dim_v);
  return Flops(checked_mul(2 * width, visible_pairs(problem).value()));
}

std::array<PublishedBound, 5> published_bounds(Index seqlen, Index head_dim, Elements sram) {
  const auto n = static_cast<double>(seqlen);
  const auto d = static_cast<double>(head_dim);
  const auto m = static_cast<double>(sram.value());
  const double by_fast_memory = n * n * d * d / m;
  const bool between_d_and_nd = d <= m && m <= n * d;
  constexpr std::string_view kDaoProposition = "Dao et al. 2022, arXiv 2205.14135, Proposition 3";
  constexpr std::string_view kDaoTheorem = "Dao et al. 2022, arXiv 2205.14135, Theorem 2";
  constexpr std::string_view kSahaYe = "Saha & Ye 2024, arXiv 2402.07443";
  return {{
      {"standard", "N d + N^2", BoundKind::attained, "any", kDaoTheorem, true, n * d + n * n},
      {"flash1", "N^2 d^2 / M", BoundKind::attained, "d <= M <= N d", kDaoTheorem, between_d_and_nd,
       by_fast_memory},
      // No exact algorithm beats it for all M of the domain at once; at one M it says nothing.
      {"exact-for-all-m", "N^2 d^2 / M", BoundKind::lower, "d <= M <= N d, not pointwise",
       kDaoProposition, between_d_and_nd, by_fast_memory},
      {"exact-large-cache", "N^2 d^2 / M", BoundKind::tight, "M >= d^2", kSahaYe, m >= d * d,
       by_fast_memory},
      {"exact-small-cache", "N^2 d / sqrt(M)", BoundKind::tight, "M < d^2", kSahaYe, m < d * d,
       n * n * d / std::sqrt(m)},
  }};
}

}  // namespace flashbound
