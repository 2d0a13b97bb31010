// The schedule against an oracle that enumerates query-key pairs from the definition alone
// (core/README.md, semantics): query i sees key j iff i + d - L <= j <= i + d + R with
// d = seqlen_kv - seqlen_q, a side of -1 has no limit, and the block mask's cell allows it.
#include "core/schedule.hpp"

#include <doctest/doctest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

TEST_SUITE_BEGIN("core.schedule");

namespace flashbound {
namespace {

// Every pair of one case, decided one by one.
class Pairs {
 public:
  explicit Pairs(const Schedule& s) : cols_(s.shape.seqlen_kv) {
    const Index d = s.shape.seqlen_kv - s.shape.seqlen_q;
    for (Index i = 0; i < s.shape.seqlen_q; ++i) {
      for (Index j = 0; j < cols_; ++j) {
        const bool left = s.mask.window_left == -1 || j >= i + d - s.mask.window_left;
        const bool right = s.mask.window_right == -1 || j <= i + d + s.mask.window_right;
        const BlockMaskView& m = s.mask.blocks;
        const bool cell = m.cells == nullptr || m.cells[i / m.block_q * m.cols + j / m.block_kv];
        seen_.push_back(left && right && cell);
      }
    }
  }

  bool seen(Index query, Index key) const {
    return seen_[static_cast<std::size_t>(query * cols_ + key)];
  }
  Coverage coverage(Interval rows, Interval keys) const {
    Index count = 0;
    for (Index i = rows.begin; i < rows.end; ++i) {
      for (Index j = keys.begin; j < keys.end; ++j) count += seen(i, j) ? 1 : 0;
    }
    if (count == 0) return Coverage::empty;
    return count == rows.size() * keys.size() ? Coverage::full : Coverage::partial;
  }

 private:
  Index cols_;
  std::vector<bool> seen_;
};

std::vector<Interval> cut(Index length, Index block) {
  std::vector<Interval> blocks;
  for (Index begin = 0; begin < length; begin += block) {
    blocks.push_back({begin, begin + block < length ? begin + block : length});
  }
  return blocks;
}

std::string describe(const Schedule& s) {
  std::ostringstream text;
  text << "seqlen " << s.shape.seqlen_q << "x" << s.shape.seqlen_kv << " window "
       << s.mask.window_left << "," << s.mask.window_right << " tile " << s.tile.block_q << "x"
       << s.tile.block_kv << " splits " << s.tile.num_splits;
  if (s.mask.blocks.present()) {
    const BlockMaskView& m = s.mask.blocks;
    text << " cells of " << m.block_q << "x" << m.block_kv << ":";
    for (Index c = 0; c < (s.shape.seqlen_q + m.block_q - 1) / m.block_q * m.cols; ++c) {
      text << " " << int{m.cells[c]};
    }
  }
  return text.str();
}

// What a range says, and whether its own promises hold: count() is the number of blocks, empty()
// means none, and a contiguous range is exactly its run.
std::vector<Block> listed(const BlockRange& range, const Schedule& s, const char* what) {
  std::vector<Block> blocks;
  for (const Block block : range) blocks.push_back(block);
  const auto count = static_cast<Index>(blocks.size());
  bool sound = range.count() == count && range.empty() == blocks.empty() &&
               range.contiguous() == !s.mask.blocks.present();
  if (range.contiguous()) {
    sound = sound && range.run().size() == count;
    for (Index b = 0; sound && b < count; ++b) {
      sound = blocks[static_cast<std::size_t>(b)].index == range.run().begin + b;
    }
  }
  if (!sound) FAIL_CHECK(what << " breaks its own promises: " << describe(s));
  return blocks;
}

void require_same(const std::vector<Block>& actual, const std::vector<Block>& expected,
                  const Schedule& s, const std::string& what) {
  if (actual == expected) return;
  std::ostringstream text;
  for (const Block& block : actual) text << " " << block.index;
  text << ", expected";
  for (const Block& block : expected) text << " " << block.index;
  FAIL(what << " =" << text.str() << " (or spans, coverage): " << describe(s));
}

// The block matrix of one case by enumeration: coverage[i][j].
struct BlockMatrix {
  std::vector<Interval> q, kv;
  std::vector<std::vector<Coverage>> coverage;

  explicit BlockMatrix(const Schedule& s)
      : q(cut(s.shape.seqlen_q, s.tile.block_q)), kv(cut(s.shape.seqlen_kv, s.tile.block_kv)) {
    const Pairs pairs(s);
    for (const Interval rows : q) {
      coverage.emplace_back();
      for (const Interval keys : kv) coverage.back().push_back(pairs.coverage(rows, keys));
    }
  }
  bool visible(std::size_t i, std::size_t j) const { return coverage[i][j] != Coverage::empty; }
  // First block of keys that block i sees, or the number of blocks.
  std::size_t first(std::size_t i) const {
    std::size_t j = 0;
    while (j < kv.size() && !visible(i, j)) ++j;
    return j;
  }
};

void check_rows_of(const Schedule& s, const BlockMatrix& matrix) {
  const auto per_split =
      (static_cast<Index>(matrix.kv.size()) + s.tile.num_splits - 1) / s.tile.num_splits;
  std::vector<Block> blind;
  for (std::size_t i = 0; i < matrix.q.size(); ++i) {
    const auto row = static_cast<Index>(i);
    std::vector<Block> whole;
    std::vector<std::vector<Block>> parts(static_cast<std::size_t>(s.tile.num_splits));
    for (std::size_t j = 0; j < matrix.kv.size(); ++j) {
      const auto col = static_cast<Index>(j);
      if (s.coverage(matrix.q[i], matrix.kv[j]) != matrix.coverage[i][j]) {
        FAIL("coverage of block " << i << "," << j << ": " << describe(s));
      }
      if (!matrix.visible(i, j)) continue;
      whole.push_back({col, matrix.kv[j], matrix.coverage[i][j]});
      parts[static_cast<std::size_t>(col / per_split)].push_back(whole.back());
    }
    require_same(listed(s.kv_blocks(row), s, "kv_blocks"), whole, s, "kv_blocks");
    std::vector<Block> joined;
    for (Index split = 0; split < s.tile.num_splits; ++split) {
      const std::vector<Block> part = listed(s.kv_blocks(row, split), s, "a split");
      require_same(part, parts[static_cast<std::size_t>(split)], s, "a split");
      joined.insert(joined.end(), part.begin(), part.end());
    }
    require_same(joined, whole, s, "splits joined");
    if (whole.empty()) blind.push_back({row, matrix.q[i], Coverage::empty});
  }
  require_same(listed(s.q_blocks_without_keys(), s, "without_keys"), blind, s, "without_keys");
}

void check_columns_of(const Schedule& s, const BlockMatrix& matrix) {
  for (std::size_t j = 0; j < matrix.kv.size(); ++j) {
    const auto col = static_cast<Index>(j);
    std::vector<Block> whole, starting, continuing;
    for (std::size_t i = 0; i < matrix.q.size(); ++i) {
      if (!matrix.visible(i, j)) continue;
      whole.push_back({static_cast<Index>(i), matrix.q[i], matrix.coverage[i][j]});
      (matrix.first(i) == j ? starting : continuing).push_back(whole.back());
    }
    require_same(listed(s.q_blocks(col), s, "q_blocks"), whole, s, "q_blocks");
    require_same(listed(s.q_blocks_starting_at(col), s, "starting"), starting, s, "starting");
    require_same(listed(s.q_blocks_continuing_at(col), s, "continuing"), continuing, s,
                 "continuing");
  }
}

// Compares one case with the oracle; returns how many blocks it compared.
Index check_case(const Schedule& s) {
  const BlockMatrix matrix(s);
  if (s.q_block_count() != static_cast<Index>(matrix.q.size()) ||
      s.kv_block_count() != static_cast<Index>(matrix.kv.size())) {
    FAIL("block counts: " << describe(s));
  }
  for (std::size_t i = 0; i < matrix.q.size(); ++i) {
    if (s.q_rows(static_cast<Index>(i)) != matrix.q[i]) FAIL("q_rows: " << describe(s));
  }
  for (std::size_t j = 0; j < matrix.kv.size(); ++j) {
    if (s.kv_rows(static_cast<Index>(j)) != matrix.kv[j]) FAIL("kv_rows: " << describe(s));
  }
  check_rows_of(s, matrix);
  check_columns_of(s, matrix);
  return static_cast<Index>(matrix.q.size() * matrix.kv.size());
}

constexpr Index kBlocks[] = {1, 2, 3, 5, 11};
constexpr Index kSplits[] = {1, 2, 3, 7};

TEST_CASE("ranges of blocks equal an enumeration of pairs for every band") {
  Index blocks = 0;
  Index cases = 0;
  for (Index seqlen_q = 0; seqlen_q <= 10; ++seqlen_q) {
    for (Index seqlen_kv = 0; seqlen_kv <= 10; ++seqlen_kv) {
      for (const Index left : {-1, 0, 1, 3, 12}) {
        for (const Index right : {-1, 0, 1, 4, 12}) {
          for (const Index block_q : kBlocks) {
            for (const Index block_kv : kBlocks) {
              const Index splits = kSplits[cases++ % 4];
              blocks += check_case(
                  {{seqlen_q, seqlen_kv, 1, 1}, {left, right, {}}, {block_q, block_kv, 1, splits}});
            }
          }
        }
      }
    }
  }
  MESSAGE(blocks << " blocks of " << cases << " bands");
  CHECK(blocks >= 250'000);
}

TEST_CASE("ranges of blocks equal an enumeration of pairs for block masks joined with bands") {
  std::mt19937_64 engine(20220527);
  Index blocks = 0;
  Index cases = 0;
  for (const Index seqlen_q : {0, 1, 3, 6, 7, 12}) {
    for (const Index seqlen_kv : {0, 1, 4, 6, 9, 12}) {
      for (const Index cell_q : {1, 2, 3, 12}) {
        for (const Index cell_kv : {1, 2, 5, 12}) {
          for (const unsigned visible_of_8 : {0U, 1U, 4U, 7U, 8U}) {
            const Index rows = (seqlen_q + cell_q - 1) / cell_q;
            const Index cols = (seqlen_kv + cell_kv - 1) / cell_kv;
            // One more byte, so that the mask is present even without cells.
            std::vector<std::uint8_t> cells(static_cast<std::size_t>(rows * cols) + 1);
            for (auto& cell : cells) cell = engine() % 8 < visible_of_8 ? 1 : 0;
            for (const auto& [left, right] :
                 {std::pair<Index, Index>{-1, -1}, {-1, 0}, {2, -1}, {2, 1}, {0, 0}}) {
              for (const auto& [block_q, block_kv] :
                   {std::pair<Index, Index>{1, 1}, {2, 2}, {3, 2}, {2, 5}, {4, 3}, {13, 13}}) {
                const Index splits = kSplits[cases++ % 4];
                blocks += check_case({{seqlen_q, seqlen_kv, 1, 1},
                                      {left, right, {cells.data(), cols, cell_q, cell_kv}},
                                      {block_q, block_kv, 1, splits}});
              }
            }
          }
        }
      }
    }
  }
  MESSAGE(blocks << " blocks of " << cases << " block masks");
  CHECK(blocks >= 250'000);
}

TEST_CASE("coverage of any rectangle and visibility of any pair equal the definition") {
  const std::vector<std::uint8_t> cells{1, 0, 1, 1, 0, 1};
  Index rectangles = 0;
  for (const bool with_cells : {false, true}) {
    for (Index left = -1; left <= 7; ++left) {
      for (Index right = -1; right <= 7; ++right) {
        for (const auto& [seqlen_q, seqlen_kv] :
             {std::pair<Index, Index>{5, 5}, {4, 6}, {6, 4}, {1, 6}, {6, 1}}) {
          const BlockMaskView view{cells.data(), 2, 2, 3};
          const Schedule s{
              {seqlen_q, seqlen_kv, 1, 1}, {left, right, with_cells ? view : BlockMaskView{}}, {}};
          const Pairs pairs(s);
          for (Index i0 = 0; i0 < seqlen_q; ++i0) {
            for (Index j0 = 0; j0 < seqlen_kv; ++j0) {
              if (s.visible(i0, j0) != pairs.seen(i0, j0)) FAIL("visible: " << describe(s));
              for (Index i1 = i0 + 1; i1 <= seqlen_q; ++i1) {
                for (Index j1 = j0 + 1; j1 <= seqlen_kv; ++j1) {
                  ++rectangles;
                  if (s.coverage({i0, i1}, {j0, j1}) != pairs.coverage({i0, i1}, {j0, j1})) {
                    FAIL("coverage of rows [" << i0 << "," << i1 << ") keys [" << j0 << "," << j1
                                              << "): " << describe(s));
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  CHECK(rectangles > 100'000);
}

// The schedule is usable where constants are needed, a kernel's launch grid among them.
constexpr Schedule kCausal{{5, 7, 64, 64}, {kUnbounded, 0, {}}, {2, 3, 1, 2}};
static_assert(kCausal.q_block_count() == 3 && kCausal.kv_block_count() == 3);
static_assert(kCausal.q_rows(2) == Interval{4, 5} && kCausal.kv_rows(2) == Interval{6, 7});
static_assert(kCausal.visible(0, 2) && !kCausal.visible(0, 3) && kCausal.visible(4, 6));
static_assert(kCausal.kv_blocks(0).count() == 2 && kCausal.kv_blocks(2).count() == 3);
static_assert(*kCausal.kv_blocks(0).begin() == Block{0, {0, 3}, Coverage::full});
static_assert(kCausal.coverage({0, 2}, {3, 6}) == Coverage::partial);
static_assert(kCausal.q_blocks(2).run() == Interval{2, 3});
static_assert(kCausal.kv_blocks(2, 0).count() == 2 && kCausal.kv_blocks(2, 1).count() == 1);

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
