// Staircases against every tile there is, and their points against the count machine.
#include "sim/tile_search.hpp"

#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/lower_bound.hpp"
#include "sim/tile_candidates.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace flashbound {
namespace {

Bytes needed(const Algorithm& algorithm, const Problem& problem, const Tile& tile,
             const TileSearch& search) {
  return required_bytes(
      footprint(algorithm.program(), problem, tile, search.dtype, search.footprint, search.stages),
      search.footprint);
}

// Every tile that there is, whole blocks to single rows, all panels and splits.
std::vector<Tile> every_tile(const Problem& problem, const Algorithm& algorithm) {
  std::vector<Tile> tiles;
  const Index sizes_kv = std::max(problem.seqlen_kv, problem.head_dim_v);
  const bool panels = algorithm.name.starts_with("small-cache");
  const Index splits = algorithm.name == "split-kv" ? problem.seqlen_kv + 1 : 1;
  for (Index q = 1; q <= problem.seqlen_q; ++q) {
    for (Index kv = 1; kv <= sizes_kv; ++kv) {
      for (Index panel = 1; panel <= (panels ? kv : 1); ++panel) {
        if (kv % panel != 0) continue;
        for (Index s = 1; s <= splits; ++s) {
          tiles.push_back({.block_q = q, .block_kv = kv, .panel = panel, .num_splits = s});
        }
      }
    }
  }
  return tiles;
}

// By definition: of all tiles, the bytes moved at each size where they fall.
std::vector<std::pair<Bytes, Bytes>> stairs_by_force(const Algorithm& algorithm,
                                                     const Problem& problem,
                                                     const TileSearch& search) {
  const Program program = algorithm.program();
  std::map<Bytes, Bytes> least;  // by the size of fast memory
  for (const Tile& tile : every_tile(problem, algorithm)) {
    const IoCount moved = closed_form(algorithm.name, problem, tile, search.dtype);
    Bytes sram = bytes_of(moved.sram_peak, byte_size(search.dtype));
    if (search.footprint == FootprintKind::kernel) {
      sram = Bytes();
      for (Index s = 0; s < sequence_count(problem); ++s) {
        const Schedule schedule = schedule_for(problem, tile, sequence(problem, s));
        sram = std::max(sram, kernel_footprint(program, schedule, search.dtype, search.stages));
      }
    }
    const auto [at, first] = least.try_emplace(sram, hbm_bytes(moved));
    if (!first) at->second = std::min(at->second, hbm_bytes(moved));
  }
  std::vector<std::pair<Bytes, Bytes>> stairs;
  for (const auto& [sram, moved] : least) {
    if (stairs.empty() || moved < stairs.back().second) stairs.emplace_back(sram, moved);
  }
  return stairs;
}

// Problems whose tiles can all be tried: one in a few has a block mask, or packed sequences.
bool small(const Problem& problem) {
  return problem.seqlen_q * std::max(problem.seqlen_kv, problem.head_dim_v) <= 300;
}

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

// The staircase is that of all tiles, and every point what its tile counts by the machine.
void check_least(const Algorithm& algorithm, const Problem& problem, const TileSearch& search) {
  const Staircase stairs = staircase(algorithm, problem, search);
  REQUIRE(stairs.all_tiles);
  std::vector<std::pair<Bytes, Bytes>> found;
  for (const StairPoint& point : stairs.points) found.emplace_back(point.sram, point.moved());
  CHECK(found == stairs_by_force(algorithm, problem, search));
  for (const StairPoint& point : stairs.points) {
    CHECK(point.algorithm == algorithm.name);
    const IoCount counted = count(algorithm.program(), problem, point.tile, search.dtype);
    CHECK(point.read == hbm_read_bytes(counted));
    CHECK(point.written == hbm_write_bytes(counted));
    CHECK(point.sram == needed(algorithm, problem, point.tile, search));
    const LowerBound bound = lower_bound(problem, search.dtype, algorithm.pass, point.sram);
    CHECK(point.read >= bound.read_bytes());
    CHECK(point.written >= bound.write_bytes());
  }
}

// Of the tiles tried, no larger one has a point's size and bytes.
void check_ties(const Algorithm& algorithm, const Problem& problem, const TileSearch& search) {
  const TileCandidates tried = tile_candidates(algorithm.name, problem);
  const Staircase stairs = staircase(algorithm, problem, search);
  CHECK(stairs.tried == static_cast<Index>(tried.block_q.size() * tried.block_kv.size()));
  for (const Index block_q : tried.block_q) {
    for (const Index block_kv : tried.block_kv) {
      const Tile tile{.block_q = block_q, .block_kv = block_kv};
      const ClosedTraffic moved = closed_traffic(algorithm.name, problem, tile, search.dtype);
      const Bytes sram = bytes_of(moved.sram_peak, byte_size(search.dtype));
      const StairPoint* best = stairs.at(sram);
      REQUIRE(best != nullptr);
      if (best->sram != sram || best->moved() != moved.read + moved.written) continue;
      CHECK(std::pair(block_q, block_kv) <= std::pair(best->tile.block_q, best->tile.block_kv));
    }
  }
}

struct Kinds {
  int windows = 0;
  int block_masks = 0;
  int packings = 0;
  int groups = 0;
};

// Every algorithm and both footprints, on that many random problems.
Kinds check_random_problems(int problems) {
  Kinds seen;
  for (std::uint64_t seed = 0; problems > 0; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const Problem& problem = random.problem;
    if (!small(problem)) continue;
    --problems;
    seen.windows += problem.window_left >= 0 || problem.window_right >= 0 ? 1 : 0;
    seen.block_masks += problem.block_mask ? 1 : 0;
    seen.packings += problem.cu_seqlens_q.empty() ? 0 : 1;
    seen.groups += q_heads_per_kv_head(problem) > 1 ? 1 : 0;
    for (const Algorithm& algorithm : algorithms()) {
      const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
      CAPTURE(what);
      const NumberFormat dtype = seed % 2 == 0 ? NumberFormat::fp16 : NumberFormat::fp32;
      const auto stages = static_cast<Index>(1 + seed % 3);
      check_least(algorithm, problem, {.dtype = dtype});
      check_least(algorithm, problem,
                  {.dtype = dtype, .footprint = FootprintKind::kernel, .stages = stages});
      check_ties(algorithm, problem, {.dtype = dtype});
    }
  }
  return seen;
}

}  // namespace

TEST_SUITE("sim.tile_search_long") {
  TEST_CASE("a staircase is that of all tiles on 250 problems") {
    const Kinds seen = check_random_problems(250);
    // Each kind is there in numbers.
    for (const int kind : {seen.windows, seen.block_masks, seen.packings, seen.groups}) {
      CHECK(kind >= 40);
    }
  }
}

TEST_SUITE("sim.tile_search") {
  TEST_CASE("a staircase is that of all tiles on a few problems") { check_random_problems(10); }

  TEST_CASE("a search that leaves tiles out has only points that their tiles attain") {
    Problem problem = square(6000, 8);
    problem.window_right = 0;
    const Staircase stairs = staircase(algorithm_named("small-cache"), problem, {});
    CHECK_FALSE(stairs.all_tiles);
    for (std::size_t p = 0; p < stairs.points.size(); p += 16) {
      const StairPoint& point = stairs.points[p];
      const IoCount counted = count(small_cache_program(), problem, point.tile, NumberFormat::fp16);
      CHECK(point.read == hbm_read_bytes(counted));
      CHECK(point.written == hbm_write_bytes(counted));
      CHECK(point.sram == bytes_of(counted.sram_peak, 2));
    }
  }

  TEST_CASE("a staircase falls as it rises and nothing fits below it") {
    for (const Algorithm& algorithm : algorithms()) {
      const Staircase stairs = staircase(algorithm, square(100, 16), {});
      CAPTURE(algorithm.name);
      for (std::size_t p = 1; p < stairs.points.size(); ++p) {
        CHECK(stairs.points[p].sram > stairs.points[p - 1].sram);
        CHECK(stairs.points[p].moved() < stairs.points[p - 1].moved());
        CHECK(stairs.at(stairs.points[p].sram - Bytes(1)) == &stairs.points[p - 1]);
      }
      CHECK(stairs.at(stairs.points.front().sram - Bytes(1)) == nullptr);
      CHECK(stairs.at(Bytes(Int128{1} << 60)) == &stairs.points.back());
    }
  }

  TEST_CASE("no point of an envelope is below the lower bounds at its size") {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const Index d : {4, 16, 64}) {
        const Problem problem = square(600, d);
        std::vector<Staircase> all;
        for (const Algorithm& algorithm : algorithms(pass)) {
          all.push_back(staircase(algorithm, problem, {}));
        }
        for (const StairPoint& point : envelope(all).points) {
          const LowerBound bound = lower_bound(problem, NumberFormat::fp16, pass, point.sram);
          CHECK(point.read >= bound.read_bytes());
          CHECK(point.written >= bound.write_bytes());
        }
      }
    }
  }

  TEST_CASE("the envelope is the least staircase at every size") {
    const Problem problem = square(300, 32);
    std::vector<Staircase> all;
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      all.push_back(staircase(algorithm, problem, {}));
    }
    const Staircase merged = envelope(all);
    for (Index sram = 1; sram < 200000; sram += 97) {
      const StairPoint* best = merged.at(Bytes(sram));
      for (const Staircase& one : all) {
        const StairPoint* point = one.at(Bytes(sram));
        if (point == nullptr) continue;
        REQUIRE(best != nullptr);
        CHECK(best->moved() <= point->moved());
      }
    }
  }

  TEST_CASE("threads change nothing") {
    const ParallelFor three = [](Index count, const std::function<void(Index)>& body) {
      std::vector<std::thread> threads;
      for (Index first = 0; first < 3; ++first) {
        threads.emplace_back([&body, count, first] {
          for (Index part = count - 1 - first; part >= 0; part -= 3) body(part);
        });
      }
      for (std::thread& thread : threads) thread.join();
    };
    Problem problem = square(60, 8);
    for (const Index window_right : {kUnbounded, Index{0}}) {
      problem.window_right = window_right;
      for (const Algorithm& algorithm : algorithms()) {
        CAPTURE(algorithm.name);
        const Staircase one = staircase(algorithm, problem, {});
        const Staircase other = staircase(algorithm, problem, {}, three);
        CHECK(one.points == other.points);
        CHECK(one.tried == other.tried);
      }
    }
  }

  TEST_CASE("of algorithms that tie the first of the list is named") {
    const Problem problem = square(50, 4);
    const Staircase flash2 = staircase(algorithm_named("flash2"), problem, {});
    Staircase twin = flash2;
    for (StairPoint& point : twin.points) point.algorithm = "twin";
    CHECK(envelope({flash2, twin}).points == flash2.points);
    CHECK(envelope({twin, flash2}).points == twin.points);
    CHECK(envelope({}).points.empty());
    twin.all_tiles = false;
    CHECK_FALSE(envelope({flash2, twin}).all_tiles);
    CHECK(envelope({flash2, twin}).tried == 2 * flash2.tried);
  }
}

}  // namespace flashbound
