// The engines on the traces of programs: every capacity against caches by the book, and tiles with
// their repeats against lines.
#include "core/programs.hpp"
#include "sim/memory_levels.hpp"
#include "sim/program_trace.hpp"
#include "sim/stack_curve.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/sim/cache_oracle.hpp"
#include "tests/sim/level_oracle.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace flashbound {
namespace {

constexpr NumberFormat kDtype = NumberFormat::fp16;
constexpr LayoutKind kKinds[] = {LayoutKind::contiguous, LayoutKind::strided, LayoutKind::padded};

// Lengths of a few blocks, so that every capacity can be tried.
testing::RandomCase small_case(std::uint64_t seed) {
  testing::RandomCase random = testing::random_case(seed);
  Problem& p = random.problem;
  p.block_mask.reset();
  p.cu_seqlens_q.clear();
  p.cu_seqlens_kv.clear();
  p.batch = 1;
  p.num_heads_q = p.num_heads_kv = 1 + static_cast<Index>(seed % 2);
  p.alibi_slopes.clear();
  p.sink.clear();
  p.seqlen_q = 1 + p.seqlen_q % 9;
  p.seqlen_kv = 1 + p.seqlen_kv % 9;
  random.tile.block_q = 1 + random.tile.block_q % 4;
  random.tile.block_kv = 1 + random.tile.block_kv % 4;
  random.tile.panel = 1;
  return random;
}

struct Case {
  Program program;
  testing::RandomCase random;
  Layout where;
};

void for_each_case(std::uint64_t cases, Index line, const std::function<void(const Case&)>& check) {
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const testing::RandomCase random = small_case(seed);
    for (const Algorithm& algorithm : algorithms()) {
      const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
      CAPTURE(what);
      const Program program = algorithm.program();
      check({program, random,
             layout(program, random.problem, random.tile, kDtype, kKinds[seed % 3], line)});
    }
  }
}

AccessTrace lines_of(const Case& c) {
  return line_trace(c.program, c.random.problem, c.random.tile, c.where);
}

}  // namespace

TEST_SUITE("sim.program_curve") {
  TEST_CASE("LRU and OPT equal caches by the book at every capacity on every program") {
    for_each_case(12, 8, [](const Case& c) {
      const AccessTrace trace = lines_of(c);
      for (const StackPolicy policy : {StackPolicy::lru, StackPolicy::opt}) {
        const CapacityCurve curve = stack_curve(trace, policy);
        const std::vector<Index> steps = breakpoints(curve);
        const Index most = steps.empty() ? 1 : steps.back() + 1;
        // All of the small capacities, some of the others.
        for (Index lines = 0; lines <= most; lines += lines < 24 ? 1 : 11) {
          CAPTURE(lines);
          REQUIRE(traffic_at(curve, lines) == cache_by_brute_force(trace, policy, lines));
        }
      }
    });
  }

  TEST_CASE("set-associative caches equal those by the book on every program") {
    for_each_case(12, 8, [](const Case& c) {
      const AccessTrace trace = lines_of(c);
      std::vector<OracleAccess> stream;
      for (const std::uint32_t access : trace.accesses) {
        stream.push_back({access / 2, trace.unit_tensor[access / 2], access % 2 != 0});
      }
      for (const Replacement policy :
           {Replacement::lru, Replacement::fifo, Replacement::plru, Replacement::opt}) {
        for (const Index sets : {1, 3, 8}) {
          const std::vector<CacheLevel> level{{.name = "cache",
                                               .capacity = Bytes(8 * 4 * sets),
                                               .line_bytes = 8,
                                               .ways = 4,
                                               .policy = policy}};
          LevelResult expected{.level = "cache", .line_bytes = 8};
          for (const std::string& tensor : trace.tensors) {
            expected.tensors.push_back({.tensor = tensor});
          }
          level_by_brute_force(level.front(), stream, expected);
          CAPTURE(name(policy));
          CAPTURE(sets);
          REQUIRE(simulate_levels(level, trace).front().tensors == expected.tensors);
        }
      }
    });
  }

  TEST_CASE(
      "tiles and their repeats give the LRU curve of lines wherever they may stand for them") {
    int compared = 0;
    int repeated = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      testing::RandomCase random = testing::random_case(seed);
      random.problem.head_dim *= 4;
      random.problem.head_dim_v *= 4;
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(what);
        const Program program = algorithm.program();
        const Layout where =
            layout(program, random.problem, random.tile, kDtype, LayoutKind::contiguous, 4);
        const TileTrace tiles = tile_trace(program, random.problem, random.tile, where);
        if (!tiles.trace) continue;
        const AccessTrace lines = line_trace(program, random.problem, random.tile, where);
        if (lines.accesses.size() > 60000) continue;
        ++compared;
        repeated += tiles.trace->repeats.empty() ? 0 : 1;
        REQUIRE(stack_curve(*tiles.trace, StackPolicy::lru) ==
                stack_curve(lines, StackPolicy::lru));
      }
    }
    CHECK(compared > 1000);
    CHECK(repeated > 50);
  }
}

}  // namespace flashbound
