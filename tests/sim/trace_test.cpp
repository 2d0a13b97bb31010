#include "sim/trace.hpp"

#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace flashbound {
namespace {

// Three queries in blocks of two, two keys in one block, rows of 4 halves.
const Problem kProblem{.seqlen_q = 3, .seqlen_kv = 2, .head_dim = 4, .head_dim_v = 4};
constexpr Tile kTile{.block_q = 2, .block_kv = 2};

std::vector<AccessRun> runs(const Problem& problem, LayoutKind kind, Index line,
                            Granularity granularity) {
  const Program program = flash2_program();
  const Layout where = layout(program, problem, kTile, NumberFormat::fp16, kind, line);
  std::vector<AccessRun> list;
  trace(program, problem, kTile, where, granularity,
        [&](const AccessRun& run) { list.push_back(run); });
  return list;
}

enum { q, k, v, o, lse };  // tensors of flash2

}  // namespace

TEST_SUITE_BEGIN("trace");

// With lines of 16 bytes: q [0, 24), k [32, 48), v [48, 64), o [64, 88), lse [96, 108).
TEST_CASE("flash2 at each granularity worked out on paper") {
  using Runs = std::vector<AccessRun>;
  CHECK(runs(kProblem, LayoutKind::contiguous, 16, Granularity::element) ==
        Runs{{0, 8, 2, q, false},
             {32, 8, 2, k, false},
             {48, 8, 2, v, false},
             {64, 8, 2, o, true},
             {96, 2, 4, lse, true},
             {16, 4, 2, q, false},
             {32, 8, 2, k, false},
             {48, 8, 2, v, false},
             {80, 4, 2, o, true},
             {104, 1, 4, lse, true}});
  CHECK(runs(kProblem, LayoutKind::contiguous, 16, Granularity::line) ==
        Runs{{0, 1, 16, q, false},
             {32, 1, 16, k, false},
             {48, 1, 16, v, false},
             {64, 1, 16, o, true},
             {96, 1, 16, lse, true},
             {16, 1, 16, q, false},
             {32, 1, 16, k, false},
             {48, 1, 16, v, false},
             {80, 1, 16, o, true},
             {96, 1, 16, lse, true}});
  CHECK(runs(kProblem, LayoutKind::contiguous, 16, Granularity::tile) ==
        Runs{{0, 1, 16, q, false},
             {32, 1, 16, k, false},
             {48, 1, 16, v, false},
             {64, 1, 16, o, true},
             {96, 1, 8, lse, true},
             {16, 1, 8, q, false},
             {32, 1, 16, k, false},
             {48, 1, 16, v, false},
             {80, 1, 8, o, true},
             {104, 1, 4, lse, true}});
}

TEST_CASE("rows apart in memory meet their lines row by row") {
  const auto loads_of_q = [](std::vector<AccessRun> list) {
    std::erase_if(list, [](const AccessRun& run) { return run.tensor != q; });
    return list;
  };
  // Padded to lines of 16 bytes each row of 8 bytes has a line of its own.
  CHECK(loads_of_q(runs(kProblem, LayoutKind::padded, 16, Granularity::line)) ==
        std::vector<AccessRun>{{0, 1, 16, q, false}, {16, 1, 16, q, false}, {32, 1, 16, q, false}});
  // Two heads interleave: row r of head h lies at 16 r + 8 h, and a line of 32 bytes holds two
  // rows of each head. A row is a segment, so that each meets the line again.
  Problem two_heads = kProblem;
  two_heads.num_heads_q = two_heads.num_heads_kv = 2;
  CHECK(loads_of_q(runs(two_heads, LayoutKind::strided, 32, Granularity::line)) ==
        std::vector<AccessRun>{{0, 1, 32, q, false},
                               {0, 1, 32, q, false},
                               {32, 1, 32, q, false},
                               {0, 1, 32, q, false},
                               {0, 1, 32, q, false},
                               {32, 1, 32, q, false}});
}

TEST_CASE("query heads of a group load the same keys one head after another") {
  Problem grouped = kProblem;
  grouped.num_heads_q = 2;
  std::vector<AccessRun> keys = runs(grouped, LayoutKind::contiguous, 16, Granularity::tile);
  std::erase_if(keys, [](const AccessRun& run) { return run.tensor != k; });
  REQUIRE(keys.size() == 4);
  for (const AccessRun& run : keys) CHECK(run == keys.front());
}

TEST_SUITE_END();

}  // namespace flashbound
