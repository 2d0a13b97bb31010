// Which sizes a search looks at, by enumeration, and when it owns up to having left some out.
#include "sim/tile_candidates.hpp"

#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

namespace flashbound {
namespace {

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

Problem packed(const std::vector<Index>& lengths, Index head_dim) {
  Problem problem = square(std::accumulate(lengths.begin(), lengths.end(), Index{0}), head_dim);
  problem.cu_seqlens_q = {0};
  for (const Index length : lengths) {
    problem.cu_seqlens_q.push_back(problem.cu_seqlens_q.back() + length);
  }
  problem.cu_seqlens_kv = problem.cu_seqlens_q;
  return problem;
}

Problem with_cells(Problem problem, Index cell) {
  const Index side = Partition{problem.seqlen_q, cell}.count();
  BlockMask mask{.block_q = cell, .block_kv = cell, .rows = side, .cols = side};
  mask.cells.assign(static_cast<std::size_t>(side * side), 1);
  problem.block_mask = mask;
  return problem;
}

// The least size for each way to cut all lengths.
std::vector<Index> enumerated(const std::vector<Index>& lengths, Index longest) {
  std::set<std::vector<Index>> seen;
  std::vector<Index> sizes;
  for (Index size = 1; size <= longest; ++size) {
    std::vector<Index> blocks;
    blocks.reserve(lengths.size());
    for (const Index length : lengths) blocks.push_back(Partition{length, size}.count());
    if (seen.insert(blocks).second) sizes.push_back(size);
  }
  return sizes;
}

std::vector<Index> up_to(Index longest) {
  std::vector<Index> sizes(static_cast<std::size_t>(longest));
  std::iota(sizes.begin(), sizes.end(), Index{1});
  return sizes;
}

}  // namespace

TEST_SUITE("sim.tile_candidates") {
  TEST_CASE("block sizes that matter are the least for each number of blocks") {
    for (Index length = 1; length <= 300; ++length) {
      CHECK(distinct_block_sizes(length) == enumerated({length}, length));
    }
    CHECK(distinct_block_sizes(0).empty());
  }

  TEST_CASE("packed sequences have the sizes that cut any of them differently") {
    const std::vector<Index> lengths{10, 0, 23, 10, 7};
    const Problem problem = packed(lengths, 4);
    CHECK(tile_candidates("flash2", problem).block_q == enumerated(lengths, 23));
    CHECK(tile_candidates("flash1", problem).block_kv == enumerated(lengths, 23));
    // Blocks of keys cut head_dim_v as well.
    CHECK(tile_candidates("small-cache", problem).block_kv ==
          enumerated({10, 0, 23, 10, 7, 4}, 23));
    CHECK(tile_candidates("small-cache", problem).all);
  }

  TEST_CASE("masked sequences have every size up to the longest") {
    Problem problem = packed({10, 0, 23, 10, 7}, 64);
    problem.window_right = 0;
    CHECK(tile_candidates("flash2", problem).block_q == up_to(23));
    CHECK(tile_candidates("flash2", problem).block_kv == up_to(1));
    CHECK(tile_candidates("rabe-staats", problem).block_q == up_to(23));
    CHECK(tile_candidates("rabe-staats", problem).block_kv == up_to(64));
    // It looks at no mask.
    CHECK(tile_candidates("standard-tiled", problem).block_q == enumerated({10, 23, 7}, 23));
  }

  TEST_CASE("a masked search too large to be complete says so") {
    Problem problem = square(1 << 14, 64);
    problem.window_right = 0;
    CHECK_FALSE(tile_candidates("small-cache", problem).all);
    CHECK(tile_candidates("flash2", problem).all);
    CHECK(tile_candidates("flash2", problem).block_q.size() == std::size_t{1} << 14);
  }

  TEST_CASE("a search without a mask is complete until its tiles are too many") {
    for (const Algorithm& algorithm : algorithms()) {
      CAPTURE(algorithm.name);
      CHECK(tile_candidates(algorithm.name, square(1 << 20, 64)).all);
    }
    const TileCandidates some = tile_candidates("small-cache", square(Index{1} << 32, 64));
    CHECK_FALSE(some.all);
    CHECK(some.block_q.front() == 1);
    CHECK(some.block_q.back() == Index{1} << 32);
    CHECK(tile_candidates("flash2", square(Index{1} << 32, 64)).all);
  }

  TEST_CASE("a mask of many cells or many sequences leave fewer tiles") {
    // 2^16 cells, for up to 2^8 x 2^8 tiles.
    CHECK_FALSE(tile_candidates("small-cache", with_cells(square(256, 16), 1)).all);
    CHECK(tile_candidates("small-cache", with_cells(square(256, 16), 16)).all);
    // What does not look at the cells has all the time.
    CHECK(tile_candidates("standard-tiled", with_cells(square(1024, 16), 1)).all);
    // 2^12 sequences, each a form, for 64 x 64 tiles.
    Problem many = packed(std::vector<Index>(1 << 12, 64), 64);
    many.window_right = 0;
    CHECK_FALSE(tile_candidates("small-cache", many).all);
    CHECK(tile_candidates("flash2", many).all);
  }
}

}  // namespace flashbound
