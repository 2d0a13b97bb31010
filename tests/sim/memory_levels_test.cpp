#include "sim/memory_levels.hpp"

#include "core/errors.hpp"
#include "sim/cache.hpp"
#include "sim/stack_curve.hpp"
#include "sim/victims.hpp"
#include "tests/sim/level_oracle.hpp"
#include "tests/sim/random_trace.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace flashbound {
namespace {

constexpr Replacement kPolicies[] = {Replacement::lru, Replacement::fifo, Replacement::random,
                                     Replacement::plru, Replacement::opt};

Index below(std::mt19937_64& random, Index limit) {
  return static_cast<Index>(random() % static_cast<std::uint64_t>(limit));
}

CacheLevel random_level(std::mt19937_64& random, Replacement policy, Index line_bytes) {
  CacheLevel level{.name = "l", .line_bytes = line_bytes, .policy = policy};
  level.ways = policy == Replacement::plru ? Index{1} << below(random, 4) : 1 + below(random, 6);
  const Index sets = 1 + below(random, 5);
  level.capacity = Bytes(Int128{sets} * level.ways * line_bytes);
  level.write_through = below(random, 3) == 0;
  level.write_miss = static_cast<WriteMiss>(below(random, 3));
  level.seed = random();
  if (sets == 1 && below(random, 2) == 0) level.ways = 0;  // the same by another name
  return level;
}

std::vector<LevelResult> by_brute_force(const std::vector<CacheLevel>& levels,
                                        const AccessTrace& trace) {
  std::vector<OracleAccess> stream;
  for (const std::uint32_t access : trace.accesses) {
    stream.push_back({access / 2, trace.unit_tensor[access / 2], access % 2 != 0});
  }
  std::vector<LevelResult> results;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    if (l > 0) {
      const Index ratio = levels[l].line_bytes / levels[l - 1].line_bytes;
      for (OracleAccess& access : stream) access.line /= ratio;
    }
    LevelResult result{.level = levels[l].name, .line_bytes = levels[l].line_bytes};
    for (const std::string& tensor : trace.tensors) result.tensors.push_back({.tensor = tensor});
    stream = level_by_brute_force(levels[l], stream, result);
    results.push_back(result);
  }
  return results;
}

std::string refusal(const CacheLevel& level) {
  try {
    validate(std::vector<CacheLevel>{level});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_SUITE("sim.memory_levels") {
  TEST_CASE("rows of caches equal a textbook's at every policy and geometry") {
    std::mt19937_64 random(1);
    for (int round = 0; round < 3000; ++round) {
      const AccessTrace trace = random_trace(random, 40, 120);
      std::vector<CacheLevel> levels;
      Index line_bytes = 64;
      for (Index l = 0; l <= below(random, 3); ++l) {
        levels.push_back(random_level(random, kPolicies[below(random, 5)], line_bytes));
        line_bytes *= Index{1} << below(random, 2);
      }
      const std::vector<LevelResult> results = simulate_levels(levels, trace);
      const std::vector<LevelResult> expected = by_brute_force(levels, trace);
      REQUIRE(results.size() == expected.size());
      for (std::size_t l = 0; l < results.size(); ++l) {
        CAPTURE(round);
        CAPTURE(l);
        CAPTURE(name(levels[l].policy));
        REQUIRE(results[l].tensors == expected[l].tensors);
      }
    }
  }

  TEST_CASE("fully associative LRU and OPT are points of the capacity curve") {
    std::mt19937_64 random(2);
    for (int round = 0; round < 300; ++round) {
      const AccessTrace trace = random_trace(random, 30, 300);
      for (const bool lru : {true, false}) {
        const CapacityCurve curve = stack_curve(trace, lru ? StackPolicy::lru : StackPolicy::opt);
        for (Index lines = 1; lines <= trace.unit_count() + 1; lines += 3) {
          const std::vector<CacheLevel> level{
              {.capacity = Bytes(64 * lines), .policy = lru ? Replacement::lru : Replacement::opt}};
          const LevelResult result = simulate_levels(level, trace).front();
          const std::vector<CacheTraffic> expected = traffic_at(curve, lines);
          for (std::size_t t = 0; t < expected.size(); ++t) {
            CHECK(result.tensors[t].read_hits == expected[t].read_hits);
            CHECK(result.tensors[t].read_misses == expected[t].read_misses);
            CHECK(result.tensors[t].write_hits == expected[t].write_hits);
            CHECK(result.tensors[t].write_misses == expected[t].write_misses);
            CHECK(result.tensors[t].write_backs == expected[t].write_backs);
          }
          CHECK(read_bytes(result) == read_bytes(expected, 64));
          CHECK(write_bytes(result) == write_bytes(expected, 64));
        }
      }
    }
  }

  TEST_CASE("what leaves a level is what reaches the next") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 300; ++round) {
      const AccessTrace trace = random_trace(random, 60, 500);
      std::vector<CacheLevel> levels;
      for (int l = 0; l < 3; ++l) levels.push_back(random_level(random, Replacement::lru, 64));
      const std::vector<LevelResult> results = simulate_levels(levels, trace);
      for (std::size_t l = 1; l < results.size(); ++l) {
        for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
          const LevelTraffic& inner = results[l - 1].tensors[t];
          const LevelTraffic& outer = results[l].tensors[t];
          CHECK(inner.reads_on() == outer.read_hits + outer.read_misses);
          CHECK(inner.writes_on() == outer.write_hits + outer.write_misses);
        }
      }
    }
  }

  TEST_CASE("more lines can make FIFO miss more") {
    // Belady, Nelson and Shedler 1969.
    AccessTrace trace{.line_bytes = 64, .tensors = {"x"}};
    trace.unit_tensor.assign(5, 0);
    for (const std::uint32_t unit : {0U, 1U, 2U, 3U, 0U, 1U, 4U, 0U, 1U, 2U, 3U, 4U}) {
      trace.accesses.push_back(AccessTrace::read(unit));
    }
    const auto misses = [&](Index lines) {
      const std::vector<CacheLevel> level{
          {.capacity = Bytes(64 * lines), .policy = Replacement::fifo}};
      return simulate_levels(level, trace).front().tensors[0].read_misses;
    };
    CHECK(misses(3) == 9);
    CHECK(misses(4) == 10);
  }

  TEST_CASE("the same seed draws the same victims and another draws others") {
    std::mt19937_64 random(5);
    AccessTrace trace{.line_bytes = 64, .tensors = {"x"}};
    trace.unit_tensor.assign(40, 0);
    for (const std::uint32_t unit : touched_units(random, TraceKind::uniform, 40, 4000)) {
      trace.accesses.push_back(AccessTrace::read(unit));
    }
    const auto traffic = [&](std::uint64_t seed) {
      const std::vector<CacheLevel> level{
          {.capacity = Bytes(64 * 12), .ways = 4, .policy = Replacement::random, .seed = seed}};
      return simulate_levels(level, trace).front().tensors;
    };
    int other = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CHECK(traffic(seed) == traffic(seed));
      other += traffic(seed) == traffic(seed + 20) ? 0 : 1;
    }
    CHECK(other > 10);
  }

  TEST_CASE("a cache driven by hand tells hits from misses as it counts them") {
    std::mt19937_64 random(6);
    for (int round = 0; round < 100; ++round) {
      const AccessTrace trace = random_trace(random, 40, 200);
      const CacheLevel level = random_level(random, Replacement::lru, 64);
      LevelResult result;
      for (const std::string& tensor : trace.tensors) result.tensors.push_back({.tensor = tensor});
      std::vector<LineAccess> onward;
      Cache cache(level, ListVictims(level.sets(), level.set_ways(), true),
                  static_cast<std::size_t>(trace.unit_count()), result, onward);
      Index hits = 0;
      for (const std::uint32_t access : trace.accesses) {
        const std::uint32_t line = access / 2;
        hits += cache.access({line, trace.unit_tensor[line], access % 2 != 0}) ? 1 : 0;
      }
      cache.flush();
      cache.flush();  // nothing is dirty any more
      CHECK(result.tensors == simulate_levels(std::vector<CacheLevel>{level}, trace)[0].tensors);
      Index counted = 0;
      for (const LevelTraffic& t : result.tensors) counted += t.read_hits + t.write_hits;
      CHECK(hits == counted);
    }
  }

  TEST_CASE("dirty lines stay where the end does not flush them") {
    AccessTrace trace{.line_bytes = 64, .tensors = {"o"}};
    trace.unit_tensor.assign(2, 0);
    trace.accesses = {AccessTrace::write(0), AccessTrace::write(1)};
    const std::vector<CacheLevel> level{{.capacity = Bytes(64)}};
    CHECK(simulate_levels(level, trace).front().tensors[0].write_backs == 2);
    CHECK(simulate_levels(level, trace, Flush::never).front().tensors[0].write_backs == 1);
  }

  TEST_CASE("a fully associative level takes any number of bytes and says what it leaves") {
    const CacheLevel level{.capacity = Bytes(1000)};
    validate(std::vector<CacheLevel>{level});
    CHECK(level.lines() == 15);
    CHECK(level.unused() == Bytes(40));
    // Twelve ways of any number of sets.
    validate(std::vector<CacheLevel>{{.capacity = Bytes(64 * 12 * 7), .ways = 12}});
  }

  TEST_CASE("bad geometry is one line that says what is allowed") {
    CHECK(refusal({.capacity = Bytes(0)}) ==
          "cache.capacity = 0: must be 1 to 268435456 lines of 64 bytes");
    CHECK(refusal({.capacity = Bytes(-64)}) != "");
    CHECK(refusal({.capacity = Bytes(Int128{1} << 100)}) != "");
    CHECK(refusal({.capacity = Bytes(63)}) != "");
    CHECK(refusal({.capacity = Bytes(640), .line_bytes = 0}) != "");
    CHECK(refusal({.capacity = Bytes(640), .line_bytes = 48}) != "");
    CHECK(refusal({.capacity = Bytes(640), .line_bytes = -64}) != "");
    CHECK(refusal({.capacity = Bytes(640), .ways = -1}) != "");
    CHECK(refusal({.capacity = Bytes(640), .ways = 11}) != "");
    CHECK(refusal({.capacity = Bytes(640), .ways = 3}) ==
          "cache.capacity = 640: must be a multiple of ways x line_bytes = 192");
    CHECK(refusal({.capacity = Bytes(64 * 12), .ways = 12, .policy = Replacement::plru}) != "");
    CHECK_THROWS_AS(validate(std::vector<CacheLevel>{}), ConfigError);
    CHECK_THROWS_AS(validate(std::vector<CacheLevel>{{.capacity = Bytes(1280), .line_bytes = 128},
                                                     {.capacity = Bytes(640)}}),
                    ConfigError);
  }

  TEST_CASE("traces that are none of lines are refused") {
    std::mt19937_64 random(4);
    const std::vector<CacheLevel> level{{.capacity = Bytes(640)}};
    CHECK_THROWS_AS(simulate_levels(level, random_tiles(random, 5, 9)), ConfigError);
    AccessTrace trace = random_trace(random, 5, 9);
    trace.line_bytes = 32;
    CHECK_THROWS_AS(simulate_levels(level, trace), ConfigError);
    trace.line_bytes = 64;
    trace.repeats = {{.begin = 0, .end = 1, .times = 2}};
    CHECK_THROWS_AS(simulate_levels(level, trace), ConfigError);
  }

  TEST_CASE("policies are known by their names") {
    for (const Replacement policy : kPolicies) CHECK(replacement_named(name(policy)) == policy);
    CHECK_FALSE(replacement_named("mru").has_value());
  }
}

}  // namespace flashbound
