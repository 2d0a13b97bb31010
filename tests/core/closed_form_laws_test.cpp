// Laws that hold between closed forms of different problems, masks and tiles.
#include "core/closed_form.hpp"
#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

namespace flashbound {
namespace {

IoCount fp16_count(std::string_view algorithm, const Problem& problem, const Tile& tile) {
  return closed_form(algorithm, problem, tile, NumberFormat::fp16);
}

Elements read_of(const IoCount& count, std::string_view name) {
  for (const TensorTraffic& tensor : count.tensors) {
    if (tensor.tensor == name) return tensor.read;
  }
  return {};
}

// No tensor travels more, nothing more is computed or held.
void check_no_more(const IoCount& less, const IoCount& more) {
  for (std::size_t t = 0; t < less.tensors.size(); ++t) {
    CAPTURE(less.tensors[t].tensor);
    CHECK(less.tensors[t].read <= more.tensors[t].read);
    CHECK(less.tensors[t].written <= more.tensors[t].written);
  }
  CHECK(less.sram_peak <= more.sram_peak);
  CHECK(less.flops <= more.flops);
  CHECK(less.exponentials <= more.exponentials);
  CHECK(less.rescales_at_most <= more.rescales_at_most);
}

Index between(std::mt19937_64& engine, Index low, Index high) {
  return low + static_cast<Index>(engine() % static_cast<std::uint64_t>(high - low + 1));
}

struct Case {
  Problem problem;
  Tile tile;
};

Case random_band(std::mt19937_64& engine) {
  Case result;
  Problem& problem = result.problem;
  problem.seqlen_q = between(engine, 1, 400);
  problem.seqlen_kv = between(engine, 1, 400);
  problem.head_dim = between(engine, 1, 80);
  problem.head_dim_v = between(engine, 1, 80);
  problem.window_left = between(engine, -1, 200);
  problem.window_right = between(engine, -1, 100);
  const Index panel = between(engine, 1, 16);
  result.tile = {.block_q = between(engine, 1, 70),
                 .block_kv = panel * between(engine, 1, 8),
                 .panel = panel,
                 .num_splits = between(engine, 1, 9)};
  return result;
}

// `problem` under a mask of block_q x block_kv cells that are all shown or all hidden.
Problem with_uniform_mask(Problem problem, Index block_q, Index block_kv, std::uint8_t cell) {
  BlockMask mask;
  mask.block_q = block_q;
  mask.block_kv = block_kv;
  mask.rows = Partition{problem.seqlen_q, block_q}.count();
  mask.cols = Partition{problem.seqlen_kv, block_kv}.count();
  mask.cells.assign(static_cast<std::size_t>(mask.rows * mask.cols), cell);
  problem.block_mask = mask;
  return problem;
}

template <class Check>
void for_each_random_band(std::uint64_t seed, const Check& check) {
  std::mt19937_64 engine(seed);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const Case random = random_band(engine);
    CAPTURE(repeat);
    for (const Algorithm& algorithm : algorithms()) {
      CAPTURE(algorithm.name);
      check(algorithm.name, random);
    }
  }
}

}  // namespace

TEST_SUITE("core.closed_form") {
  TEST_CASE("a mask never moves more than no mask") {
    for_each_random_band(11, [](std::string_view algorithm, const Case& random) {
      Problem full = random.problem;
      full.window_left = full.window_right = kUnbounded;
      check_no_more(fp16_count(algorithm, random.problem, random.tile),
                    fp16_count(algorithm, full, random.tile));
    });
  }

  TEST_CASE("a wider window never moves less") {
    for_each_random_band(12, [](std::string_view algorithm, const Case& random) {
      Problem wider = random.problem;
      if (wider.window_left >= 0) wider.window_left += 13;
      if (wider.window_right >= 0) wider.window_right += 7;
      check_no_more(fp16_count(algorithm, random.problem, random.tile),
                    fp16_count(algorithm, wider, random.tile));
    });
  }

  TEST_CASE("a multiple of block_q never moves more bytes of K or V") {
    for_each_random_band(13, [](std::string_view algorithm, const Case& random) {
      Tile larger = random.tile;
      larger.block_q *= 3;
      const IoCount small = fp16_count(algorithm, random.problem, random.tile);
      const IoCount large = fp16_count(algorithm, random.problem, larger);
      CHECK(read_of(large, "k") <= read_of(small, "k"));
      CHECK(read_of(large, "v") <= read_of(small, "v"));
    });
  }

  TEST_CASE("a multiple of block_kv never moves more bytes of Q") {
    for_each_random_band(14, [](std::string_view algorithm, const Case& random) {
      Tile larger = random.tile;
      larger.block_kv *= 2;
      CHECK(read_of(fp16_count(algorithm, random.problem, larger), "q") <=
            read_of(fp16_count(algorithm, random.problem, random.tile), "q"));
    });
  }

  TEST_CASE("heads and batch multiply traffic and leave residency alone") {
    for_each_random_band(15, [](std::string_view algorithm, const Case& random) {
      Problem many = random.problem;
      many.batch = 3;
      many.num_heads_q = 8;
      many.num_heads_kv = 2;  // every query head reads its own K and V
      const IoCount one = fp16_count(algorithm, random.problem, random.tile);
      const IoCount all = fp16_count(algorithm, many, random.tile);
      CHECK(hbm_read_bytes(all) == 24 * hbm_read_bytes(one));
      CHECK(hbm_write_bytes(all) == 24 * hbm_write_bytes(one));
      CHECK(all.flops == 24 * one.flops);
      CHECK(all.exponentials == 24 * one.exponentials);
      CHECK(all.sram_peak == one.sram_peak);
    });
  }

  TEST_CASE("packed sequences cost what they cost apart") {
    for_each_random_band(16, [](std::string_view algorithm, const Case& random) {
      Problem packed = random.problem;
      Problem other = random.problem;
      other.seqlen_q = 17;
      other.seqlen_kv = 0;
      packed.cu_seqlens_q = {0, packed.seqlen_q, packed.seqlen_q + other.seqlen_q};
      packed.cu_seqlens_kv = {0, packed.seqlen_kv, packed.seqlen_kv};
      packed.seqlen_q += other.seqlen_q;
      const IoCount a = fp16_count(algorithm, random.problem, random.tile);
      const IoCount b = fp16_count(algorithm, other, random.tile);
      const IoCount both = fp16_count(algorithm, packed, random.tile);
      CHECK(hbm_bytes(both) == hbm_bytes(a) + hbm_bytes(b));
      CHECK(both.rescales_at_most == a.rescales_at_most + b.rescales_at_most);
      CHECK(both.sram_peak == std::max(a.sram_peak, b.sram_peak));
    });
  }

  TEST_CASE("a block mask that shows everything changes nothing") {
    for_each_random_band(17, [](std::string_view algorithm, const Case& random) {
      const Problem masked = with_uniform_mask(random.problem, 29, 31, 1);
      CHECK(fp16_count(algorithm, masked, random.tile) ==
            fp16_count(algorithm, random.problem, random.tile));
    });
  }

  // Dao et al. 2022, Algorithm 5, loads K and V of a column of blocks that nobody sees.
  TEST_CASE("under a block mask that shows nothing only keys-outer programs read K") {
    for_each_random_band(18, [](std::string_view algorithm, const Case& random) {
      const Problem masked = with_uniform_mask(random.problem, 40, 50, 0);
      const IoCount count = fp16_count(algorithm, masked, random.tile);
      if (algorithm.starts_with("standard")) return;
      const bool keys_outer = algorithm.starts_with("flash1") || algorithm == "flash2-backward";
      const Elements k = keys_outer ? masked.head_dim * Elements(masked.seqlen_kv) : Elements();
      CHECK(read_of(count, "k") == k);
      CHECK(count.flops == Flops());
    });
  }

  // 128 queries in blocks of 64, 96 keys in blocks of 32, head_dim 16, head_dim_v 8, panels of 8.
  TEST_CASE("residency is what the algorithms hold together") {
    Problem problem;
    problem.seqlen_q = 128;
    problem.seqlen_kv = 96;
    problem.head_dim = 16;
    problem.head_dim_v = 8;
    const Tile tile{.block_q = 64, .block_kv = 32, .panel = 8, .num_splits = 2};
    // K, V, a block of scores, q, o and three statistics of its queries.
    constexpr Index kOneVisit = 32 * 16 + 32 * 8 + 64 * 32 + 64 * (16 + 8 + 3);
    const auto peak = [&](std::string_view name) {
      return to_string(fp16_count(name, problem, tile).sram_peak);
    };
    CHECK(peak("standard") == std::to_string(96 * 16 + 64 * 16 + 64 * 96));
    CHECK(peak("standard-tiled") == std::to_string(64 * 16 + 32 * 16 + 64 * 32));
    CHECK(peak("rabe-staats") ==
          std::to_string(3 * 64 * (8 + 2) + 64 * 16 + 32 * 16 + 32 * 8 + 64 * 32));
    CHECK(peak("flash1") == std::to_string(kOneVisit));
    CHECK(peak("flash1-charged-start") == std::to_string(kOneVisit));
    CHECK(peak("flash1-skip-first-read") == std::to_string(kOneVisit));
    CHECK(peak("flash2") == std::to_string(kOneVisit));
    CHECK(peak("split-kv") == std::to_string(kOneVisit));
    CHECK(peak("small-cache") == std::to_string(64 * 2 + 64 * 32 + 64 * 8 + 32 * 8));
    // P, dP and delta of a block of queries, more than a whole K, its queries and their dS.
    CHECK(peak("standard-backward") == std::to_string(64 * (2 * 96 + 1)));
    // K, V, dK, dV, two blocks of scores, q and dQ, o and dO, row_max, row_sum, delta.
    CHECK(peak("flash1-backward") ==
          std::to_string(2 * 32 * (16 + 8) + 2 * 64 * 32 + 64 * (2 * 16 + 2 * 8 + 3)));
    // No o there, and lse for the two row statistics.
    CHECK(peak("flash2-backward") ==
          std::to_string(2 * 32 * (16 + 8) + 2 * 64 * 32 + 64 * (2 * 16 + 8 + 2)));
  }

  TEST_CASE("a block of queries that sees nothing holds less unless it alone is whole") {
    Problem problem;  // 64 queries see nothing, the ragged last one sees the only key
    problem.seqlen_q = 65;
    problem.seqlen_kv = 1;
    problem.head_dim = 1;
    problem.head_dim_v = 8;
    problem.window_right = 0;
    const auto peak = [&](std::string_view name) {
      return fp16_count(name, problem, Tile{}).sram_peak;
    };
    CHECK(peak("flash1") == Elements(1 + 8 + 1 + (1 + 8 + 3)));
    CHECK(peak("flash1-skip-first-read") == 64 * Elements(8 + 2));
    CHECK(peak("flash2") == 64 * Elements(1 + 8 + 3));
  }
}

}  // namespace flashbound
