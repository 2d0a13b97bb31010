// Footprints against arithmetic done by hand for one tile shape.
#include "core/footprint.hpp"

#include "core/program_builder.hpp"
#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <string>

namespace flashbound {
namespace {

// 100 queries and keys in blocks of 32 x 48: both axes end ragged. d = 16, dv = 8.
Problem ragged_problem() {
  Problem problem;
  problem.seqlen_q = 100;
  problem.seqlen_kv = 100;
  problem.head_dim = 16;
  problem.head_dim_v = 8;
  return problem;
}
constexpr Tile kTile{.block_q = 32, .block_kv = 48, .panel = 4, .num_splits = 2};

Footprint of(const char* algorithm, const Problem& problem, NumberFormat dtype, Index stages) {
  return footprint(algorithm_named(algorithm).program(), problem, kTile, dtype,
                   FootprintKind::kernel, stages);
}

// Beside each block of keys, a column of it for every block of queries seen before.
Program copies_of_continuing_queries() {
  ProgramBuilder p("copies-of-continuing-queries");
  p.kernel("all", [&] {
    p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex j) {
      p.allocate(
          {"part", TileRole::operand, j, kColumn, true, {RangeKind::continuing_q_blocks, j.loop}});
    });
  });
  return p.build();
}

// In each split, a column of each block of queries for every block of keys seen there.
Program copies_of_splits() {
  ProgramBuilder p("copies-of-splits");
  p.kernel("all", [&] {
    p.loop("s", {RangeKind::splits}, [&](LoopIndex s) {
      p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) {
        p.allocate({"part",
                    TileRole::operand,
                    i,
                    kColumn,
                    true,
                    {RangeKind::visible_kv_blocks_split, i.loop, s.loop}});
      });
    });
  });
  return p.build();
}

}  // namespace

TEST_SUITE("core.footprint") {
  TEST_CASE("flash2 in fp16 is the sum of its buffers in bytes") {
    const Footprint f = of("flash2", ragged_problem(), NumberFormat::fp16, 1);
    // Loaded operands in fp16; scores, statistics and the accumulator in fp32.
    const Index operands = 32 * 16 + 48 * 16 + 48 * 8;       // q, k, v
    const Index wide = 32 * 48 + 32 * 8 + 32 * 2 + 32 + 32;  // scores, acc_o, m and l, factor, lse
    CHECK(f.kernel_total() == Bytes(2 * operands + 4 * wide));
    // Alive together during a visit: all but lse, one word of two bytes each.
    CHECK(f.residency == Bytes(2 * (operands + wide - 32)));
    CHECK(f.unshared_buffers == Bytes(2 * 32));  // lse has a buffer of its own
    CHECK(f.ragged_padding == Bytes{});          // the first block of each axis is whole
    CHECK(f.wider_elements == Bytes(2 * wide));
    CHECK(f.pipeline_stages == Bytes{});
  }

  TEST_CASE("stages multiply what is loaded inside the inner loop and nothing else") {
    const Footprint one = of("flash2", ragged_problem(), NumberFormat::fp16, 1);
    const Footprint three = of("flash2", ragged_problem(), NumberFormat::fp16, 3);
    CHECK(three.pipeline_stages == Bytes(2 * 2 * (48 * 16 + 48 * 8)));  // k and v, not q
    CHECK(three.kernel_total() - three.pipeline_stages == one.kernel_total());
  }

  TEST_CASE("fp32 and fp64 tiles are not widened") {
    CHECK(of("flash2", ragged_problem(), NumberFormat::fp32, 1).wider_elements == Bytes{});
    CHECK(of("flash2", ragged_problem(), NumberFormat::fp64, 1).wider_elements == Bytes{});
  }

  TEST_CASE("a block longer than its sequence is padded and itemised") {
    Problem problem = ragged_problem();
    problem.seqlen_q = 5;
    const Footprint f = of("flash2", problem, NumberFormat::fp32, 1);
    const Index rows = 32 - 5;  // of q, scores, acc_o and the four statistics
    CHECK(f.ragged_padding == Bytes(4 * rows * (16 + 48 + 8 + 4)));
  }

  TEST_CASE("rabe-staats keeps one summary for every block of keys") {
    const Footprint f = of("rabe-staats", ragged_problem(), NumberFormat::fp32, 1);
    Bytes summaries;
    for (const FootprintBuffer& buffer : f.buffers) {
      if (buffer.copies > 1) summaries += buffer.bytes;
    }
    CHECK(summaries == Bytes(4 * 3 * 32 * (8 + 1 + 1)));  // 3 blocks of 48 in 100 keys
  }

  TEST_CASE("copies are those of the block that asks for most") {
    // All four blocks of queries continue at every block of keys but the first.
    const Footprint f =
        footprint(copies_of_continuing_queries(), ragged_problem(), kTile, NumberFormat::fp32);
    CHECK(f.residency == Bytes(4 * 48 * 4));
    CHECK(f.kernel_total() == Bytes(4 * 48 * 4));
  }

  TEST_CASE("copies are those of the split that asks for most") {
    Problem problem = ragged_problem();
    problem.seqlen_q = 2;
    problem.window_left = 50;  // keys 48 to 99: two whole blocks, in the last split, or one of each
    const Tile tile{.block_q = 2, .block_kv = 25, .num_splits = 2};
    const Footprint f = footprint(copies_of_splits(), problem, tile, NumberFormat::fp32);
    CHECK(f.residency == Bytes(4 * 2 * 2));
    CHECK(f.kernel_total() == Bytes(4 * 2 * 2));
  }

  TEST_CASE("the largest kernel is the one that counts") {
    // The product of standard holds V whole, its scores kernel K whole, and d > dv.
    const Footprint f = of("standard", ragged_problem(), NumberFormat::fp32, 1);
    REQUIRE(!f.buffers.empty());
    CHECK(f.buffers.front().kernel == "scores");
    CHECK(f.kernel_total() == Bytes(4 * (100 * 16 + 32 * 16 + 32 * 100)));
  }

  TEST_CASE("memory fits at its size and not one byte below") {
    CHECK(!infeasible_reason(Bytes(1000), Bytes(1000), FootprintKind::uniform));
    const auto reason = infeasible_reason(Bytes(1000), Bytes(999), FootprintKind::kernel);
    REQUIRE(reason);
    CHECK(*reason == "requires 1000 bytes of fast memory (kernel footprint), 999 available");
  }
}

}  // namespace flashbound
