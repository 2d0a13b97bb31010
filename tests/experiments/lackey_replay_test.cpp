#include "experiments/cachegrind/lackey_replay.hpp"

#include "core/errors.hpp"
#include "experiments/cachegrind/recorded_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace flashbound {
namespace {

// cachegrind's cache by the book: each set a list of whole line addresses, the latest first.
struct BookCache {
  explicit BookCache(const CacheLevel& level)
      : ways(static_cast<std::size_t>(level.ways)), sets(static_cast<std::size_t>(level.sets())) {}

  bool touched(std::uint64_t line) {
    std::vector<std::uint64_t>& set = sets[line % sets.size()];
    const auto at = std::find(set.begin(), set.end(), line);
    const bool hit = at != set.end();
    if (hit) set.erase(at);
    set.insert(set.begin(), line);
    if (set.size() > ways) set.pop_back();
    return hit;
  }

  bool misses(std::uint64_t address, Index bytes) {
    const std::uint64_t line = address / 64;
    const std::uint64_t other = (address + static_cast<std::uint64_t>(bytes) - 1) / 64;
    const bool low = touched(line);
    const bool high = other == line || touched(other);
    return !low || !high;
  }

  std::size_t ways;
  std::vector<std::vector<std::uint64_t>> sets;
};

TiledRun run_with(const std::vector<std::string>& geometries) {
  TiledRun run{.instructions = level_of("I1", geometries[0]),
               .data = level_of("D1", geometries[1])};
  for (std::size_t l = 2; l < geometries.size(); ++l) {
    run.last.push_back(level_of("LL", geometries[l]));
  }
  return run;
}

}  // namespace

TEST_SUITE("experiments.lackey_replay") {
  TEST_CASE("a replay counts as cachegrind does by the book whatever straddles") {
    // One with a number of sets that cachegrind itself would not take.
    const TiledRun run = run_with({"512,2,64", "256,1,64", "2048,4,64", "2304,3,64"});
    std::mt19937_64 random(1);
    for (int round = 0; round < 1000; ++round) {
      LackeyReplay replay(run, Replayed::everything);
      BookCache first[] = {BookCache(run.instructions), BookCache(run.data)};
      BookCache last[] = {BookCache(run.last[0]), BookCache(run.last[1])};
      CachegrindCounts expected[2];
      Index straddling = 0;
      for (int access = 0; access < 300; ++access) {
        const auto kind = static_cast<AccessKind>(random() % 3);
        // Two places far apart, as a stack and a heap are.
        const std::uint64_t address = (random() % 2) * 0x1fff00000000 + 0x400000 + random() % 6000;
        const auto bytes = static_cast<Index>(1 + random() % 32);
        replay.access(kind, address, bytes);
        if (address / 64 != (address + static_cast<std::uint64_t>(bytes) - 1) / 64) ++straddling;
        const bool missed = first[kind == AccessKind::instruction ? 0 : 1].misses(address, bytes);
        for (int l = 0; l < 2; ++l) {
          CachegrindCount& count = kind == AccessKind::instruction ? expected[l].instructions
                                   : kind == AccessKind::read      ? expected[l].reads
                                                                   : expected[l].writes;
          ++count.accesses;
          if (!missed) continue;
          ++count.first_misses;
          if (last[l].misses(address, bytes)) ++count.last_misses;
        }
      }
      CAPTURE(round);
      REQUIRE(replay.counts()[0].all == expected[0]);
      REQUIRE(replay.counts()[1].all == expected[1]);
      REQUIRE(replay.straddling() == straddling);
    }
  }

  TEST_CASE("lackey's lines are accesses and all others are not") {
    const TiledRun run = run_with({"512,2,64", "512,2,64", "2048,4,64"});
    LackeyReplay replay(run, Replayed::everything);
    CHECK(replay.line("I  00401830,2"));
    CHECK(replay.line(" L 1fff000d20,8"));
    CHECK(replay.line(" S 1fff000d58,8"));
    CHECK(replay.line(" M 0401a2c0,4"));
    for (const char* other : {"", "I", "==1638== Lackey", "I  ", "I  00401830", "I  00401830,",
                              "I  00401830,0", "I  00401830,2 ", " L xyz,8", " X 00401830,2"}) {
      CAPTURE(other);
      CHECK_FALSE(replay.line(other));
    }
    const CachegrindCounts counts = replay.counts()[0].all;
    CHECK(counts.instructions == CachegrindCount{1, 1, 1});
    // A modify is a read; the two words of the stack lie in lines of their own.
    CHECK(counts.reads == CachegrindCount{2, 2, 2});
    CHECK(counts.writes == CachegrindCount{1, 1, 1});
  }

  TEST_CASE("misses are known by array and the arrays can be replayed alone") {
    TiledRun run = run_with({"128,1,64", "128,1,64", "256,2,64"});
    run.arrays = {{"k", 0x10000, 128}, {"o", 0x20000, 64}, {"q_i", 0x30000, 64}};
    LackeyReplay everything(run, Replayed::everything);
    LackeyReplay alone(run, Replayed::arrays_alone);
    for (const char* line : {" S 10000,8",     // filled before attention: not k's
                             " L 10078,8",     // a miss of k
                             " L 30000,8",     // a miss of scratch
                             " L 50000,8",     // foreign, and with them one too many for its set
                             " L 60000,8",     // foreign
                             " L 10000,8",     // a miss of k only if something was in between
                             " S 20000,8"}) {  // a miss of o
      CHECK(everything.line(line));
      CHECK(alone.line(line));
    }
    CHECK(everything.counts()[0].arrays == ArrayMisses{{"k", 2}, {"o", 1}, {"q_i", 1}});
    CHECK(alone.counts()[0].arrays == ArrayMisses{{"k", 1}, {"o", 1}, {"q_i", 1}});
    CHECK(alone.counts()[0].all.reads.accesses == 3);
  }

  TEST_CASE("foreign lines are those that attention asks the last level for") {
    TiledRun run = run_with({"128,1,64", "128,1,64", "256,2,64"});
    run.arrays = {{"q_i", 0x30000, 64}, {"lse", 0x20000, 64}};
    LackeyReplay replay(run, Replayed::everything);
    for (const char* line : {" L 50000,8",  // before the first touch of q_i
                             " S 30000,8", " L 60000,8", " L 70000,8", " L 70040,8",
                             " S 20000,8",     // the last write of lse
                             " L 90000,8"}) {  // after it
      CHECK(replay.line(line));
    }
    CHECK(replay.foreign_lines() == 3);
    CHECK(replay.foreign_lines_in_a_set(run.last[0]) == 2);
  }

  TEST_CASE("geometries are three numbers in valgrind's order") {
    const CacheLevel level = level_of("LL", "65536,16,64");
    CHECK(level.capacity == Bytes(65536));
    CHECK(level.ways == 16);
    CHECK(level.line_bytes == 64);
    for (const char* wrong : {"", "65536", "65536,16", "65536,16,64,", "65536,16,64,1", "a,16,64",
                              "65536;16;64", "65536, 16,64"}) {
      CAPTURE(wrong);
      CHECK_THROWS_AS(level_of("LL", wrong), ConfigError);
    }
  }

  TEST_CASE("levels that cannot be numbered together are refused") {
    CHECK_THROWS_AS(
        LackeyReplay(run_with({"512,2,32", "512,2,64", "2048,4,64"}), Replayed::everything),
        ConfigError);
    TiledRun other = run_with({"512,2,64", "512,2,64", "2048,4,64"});
    other.last[0].policy = Replacement::fifo;
    CHECK_THROWS_AS(LackeyReplay(other, Replayed::everything), ConfigError);
    // Sets of 1009 and 1013 repeat together after over 2^20 lines.
    CHECK_THROWS_AS(
        LackeyReplay(run_with({"64576,1,64", "64832,1,64", "2048,4,64"}), Replayed::everything),
        ConfigError);
  }
}

}  // namespace flashbound
