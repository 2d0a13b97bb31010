// Sums derived from the mask's definition against the ranges of Schedule, block by block.
#include "core/visible_blocks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace flashbound {
namespace {

VisibleBlocks by_enumeration(const Schedule& schedule) {
  VisibleBlocks sums;
  for (Index i = 0; i < schedule.q_block_count(); ++i) {
    const Int128 rows = schedule.q_rows(i).size();
    Index blocks = 0;
    Index keys = 0;
    Index largest = 0;
    for (const Block block : schedule.kv_blocks(i)) {
      ++blocks;
      keys += block.span.size();
      largest = std::max(largest, block.span.size());
    }
    if (blocks > 0) sums.rows_seeing += Elements(rows);
    sums.row_visits += Elements(rows * blocks);
    sums.key_visits += Elements(keys);
    sums.scores += Elements(rows * keys);
    QBlockClass& its = sums.classes[rows == schedule.tile.block_q ? 0 : 1];
    its = {schedule.q_rows(i).size(), std::max(its.kv_blocks_max, blocks),
           std::max(its.kv_block_rows, largest), its.some_see_nothing || blocks == 0};
  }
  return sums;
}

void check_against_enumeration(const Schedule& schedule) {
  CAPTURE(schedule.shape.seqlen_q);
  CAPTURE(schedule.shape.seqlen_kv);
  CAPTURE(schedule.mask.window_left);
  CAPTURE(schedule.mask.window_right);
  CAPTURE(schedule.tile.block_q);
  CAPTURE(schedule.tile.block_kv);
  const VisibleBlocks closed = visible_blocks(schedule);
  const VisibleBlocks counted = by_enumeration(schedule);
  CHECK(to_string(closed.rows_seeing) == to_string(counted.rows_seeing));
  CHECK(to_string(closed.row_visits) == to_string(counted.row_visits));
  CHECK(to_string(closed.key_visits) == to_string(counted.key_visits));
  CHECK(to_string(closed.scores) == to_string(counted.scores));
  for (std::size_t at = 0; at < 2; ++at) {
    CAPTURE(at);
    CHECK(closed.classes[at].rows == counted.classes[at].rows);
    CHECK(closed.classes[at].kv_blocks_max == counted.classes[at].kv_blocks_max);
    CHECK(closed.classes[at].kv_block_rows == counted.classes[at].kv_block_rows);
    CHECK(closed.classes[at].some_see_nothing == counted.classes[at].some_see_nothing);
  }
}

Index between(std::mt19937_64& engine, Index low, Index high) {
  return low + static_cast<Index>(engine() % static_cast<std::uint64_t>(high - low + 1));
}

}  // namespace

TEST_SUITE("core.visible_blocks") {
  TEST_CASE("closed sums over a band equal its blocks for all small shapes windows and tiles") {
    for (Index seqlen_q = 0; seqlen_q <= 6; ++seqlen_q) {
      for (Index seqlen_kv = 0; seqlen_kv <= 6; ++seqlen_kv) {
        for (Index left = -1; left <= 4; ++left) {
          for (Index right = -1; right <= 4; ++right) {
            for (Index block_q = 1; block_q <= 4; ++block_q) {
              for (Index block_kv = 1; block_kv <= 4; ++block_kv) {
                check_against_enumeration({{seqlen_q, seqlen_kv, 1, 1},
                                           {left, right, {}},
                                           {.block_q = block_q, .block_kv = block_kv}});
              }
            }
          }
        }
      }
    }
  }

  TEST_CASE("closed sums over a band equal its blocks on large problems") {
    std::mt19937_64 engine(3);
    for (int repeat = 0; repeat < 400; ++repeat) {
      const Index longest = Index{1} << between(engine, 4, 15);
      check_against_enumeration(
          {{between(engine, 0, longest), between(engine, 0, longest), 1, 1},
           {between(engine, -1, longest / 4), between(engine, -1, longest / 8), {}},
           {.block_q = between(engine, 16, 300), .block_kv = between(engine, 16, 300)}});
    }
  }

  TEST_CASE("no window shows what windows of every key show") {
    std::mt19937_64 engine(5);
    for (int repeat = 0; repeat < 2000; ++repeat) {
      const Index longest = Index{1} << between(engine, 0, 32);
      const Shape shape{between(engine, 0, longest), between(engine, 0, longest), 1, 1};
      const Tile tile{.block_q = between(engine, 1, longest), .block_kv = between(engine, 1, 999)};
      const Index reach = shape.seqlen_q + shape.seqlen_kv;
      CHECK(visible_blocks({shape, {}, tile}) == visible_blocks({shape, {reach, reach, {}}, tile}));
    }
  }

  TEST_CASE("sums over a block mask equal its blocks with and without a window") {
    std::mt19937_64 engine(4);
    for (int repeat = 0; repeat < 6000; ++repeat) {
      const Index seqlen_q = between(engine, 1, 24);
      const Index seqlen_kv = between(engine, 1, 24);
      const Partition rows{seqlen_q, between(engine, 1, 7)};
      const Partition cols{seqlen_kv, between(engine, 1, 7)};
      std::vector<std::uint8_t> cells(static_cast<std::size_t>(rows.count() * cols.count()));
      const Index sparsity = between(engine, 0, 5);
      for (std::uint8_t& cell : cells) cell = between(engine, 0, sparsity) == 0 ? 1 : 0;
      const BlockMaskView view{cells.data(), cols.count(), rows.block, cols.block};
      check_against_enumeration(
          {{seqlen_q, seqlen_kv, 1, 1},
           {between(engine, -1, 12), between(engine, -1, 6), view},
           {.block_q = between(engine, 1, 8), .block_kv = between(engine, 1, 8)}});
    }
  }

  TEST_CASE("a causal square of 2^24 queries sees a triangle of blocks") {
    constexpr Index kSeqlen = Index{1} << 24;
    constexpr Index kBlocks = kSeqlen / 64;
    const VisibleBlocks sums =
        visible_blocks({{kSeqlen, kSeqlen, 64, 64}, {kUnbounded, 0, {}}, {}});
    const Int128 triangle = Int128{kBlocks} * (kBlocks + 1) / 2;
    CHECK(sums.row_visits == Elements(triangle * 64));
    CHECK(sums.key_visits == Elements(triangle * 64));
    CHECK(sums.scores == Elements(triangle * 64 * 64));
    CHECK(sums.classes[0] == QBlockClass{64, kBlocks, 64, false});
    CHECK(sums.classes[1] == QBlockClass{});
  }
}

}  // namespace flashbound
