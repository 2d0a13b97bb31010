// What was recorded with valgrind stands against what the simulator says now.
#include "core/count.hpp"
#include "core/programs.hpp"
#include "experiments/cachegrind/recorded_run.hpp"
#include "experiments/cachegrind/tiled_model.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

namespace flashbound {
namespace {

constexpr const char* kTensors[] = {"q", "k", "v", "o", "lse"};

nlohmann::ordered_json recorded_runs() {
  std::ifstream file(FLASHBOUND_SOURCE_DIR "/experiments/cachegrind/results.json");
  return nlohmann::ordered_json::parse(file).at("runs");
}

// Without `ways` of every set; of the capacity with them.
CacheLevel narrowed(CacheLevel level, Index ways) {
  const Index sets = level.sets();
  level.ways -= ways;
  level.capacity = Bytes(Int128{sets} * level.ways * level.line_bytes);
  return level;
}

Bytes counted_reads(const TiledRun& run) {
  Problem problem;
  problem.seqlen_q = run.seqlen_q;
  problem.seqlen_kv = run.seqlen_kv;
  problem.head_dim = problem.head_dim_v = run.head_dim;
  const Tile tile{.block_q = run.block_q, .block_kv = run.block_kv};
  Bytes bytes;
  for (const TensorTraffic& t :
       count(flash2_program(), problem, tile, NumberFormat::fp32).tensors) {
    bytes += t.read_bytes();
  }
  return bytes;
}

}  // namespace

TEST_SUITE("experiments.cachegrind_results") {
  TEST_CASE("every recorded replay equals cachegrind in all nine counts") {
    Index levels = 0;
    for (const auto& run : recorded_runs()) {
      for (const auto& level : run.at("last_levels")) {
        CAPTURE(level.at("geometry").get<std::string>());
        CHECK(counts_of(level.at("replay")) == counts_of(level.at("cachegrind")));
        CHECK(counts_of(level.at("cachegrind")).reads.accesses > 1000000);
        ++levels;
      }
    }
    CHECK(levels >= 20);
  }

  TEST_CASE("the model gives what was recorded of it") {
    for (const auto& json : recorded_runs()) {
      const TiledRun run = tiled_run(json);
      for (std::size_t l = 0; l < run.last.size(); ++l) {
        const auto& level = json.at("last_levels").at(l);
        CAPTURE(level.at("geometry").get<std::string>());
        CHECK(modelled_misses(run, run.last[l]) == level.at("model_misses").get<ArrayMisses>());
      }
    }
  }

  TEST_CASE("the model equals cachegrind but for lines beside the arrays") {
    for (const auto& json : recorded_runs()) {
      const TiledRun run = tiled_run(json);
      for (std::size_t l = 0; l < run.last.size(); ++l) {
        const auto& level = json.at("last_levels").at(l);
        CAPTURE(level.at("geometry").get<std::string>());
        const Index foreign = level.at("foreign_lines_in_a_set");
        REQUIRE(foreign < run.last[l].ways);
        const ArrayMisses model = modelled_misses(run, run.last[l]);
        const ArrayMisses narrow = modelled_misses(run, narrowed(run.last[l], foreign));
        for (const char* tensor : kTensors) {
          CAPTURE(tensor);
          const Index seen = level.at("cachegrind_misses").at(tensor);
          // By function in cachegrind, by address in the replay.
          CHECK(seen == level.at("replay_misses").at(tensor).get<Index>());
          // Nothing but the arrays in the caches: no difference at all.
          CHECK(model.at(tensor) == level.at("arrays_alone_misses").at(tensor).get<Index>());
          // Each line beside them takes a way of one set at most.
          CHECK(model.at(tensor) <= seen);
          CHECK(seen <= narrow.at(tensor));
        }
      }
    }
  }

  TEST_CASE("a last level that holds nothing from one block to the next reads what is counted") {
    for (const auto& json : recorded_runs()) {
      const TiledRun run = tiled_run(json);
      const auto& misses = json.at("last_levels").at(0).at("cachegrind_misses");
      Index lines = 0;
      for (const char* tensor : {"q", "k", "v"}) lines += misses.at(tensor).get<Index>();
      CHECK(to_string(Bytes(Int128{lines} * run.last[0].line_bytes)) ==
            to_string(counted_reads(run)));
    }
  }

  TEST_CASE("the recorded sizes lie on both sides of where K and V stop fitting") {
    for (const auto& json : recorded_runs()) {
      const TiledRun run = tiled_run(json);
      const auto misses_of_k = [&](std::size_t l) {
        return json.at("last_levels").at(l).at("cachegrind_misses").at("k").get<Index>();
      };
      const Index k_lines = run.seqlen_kv * run.head_dim * 4 / 64;
      const Index blocks = (run.seqlen_q + run.block_q - 1) / run.block_q;
      Index least = misses_of_k(0);
      for (std::size_t l = 0; l < run.last.size(); ++l) least = std::min(least, misses_of_k(l));
      CHECK(misses_of_k(0) == k_lines * blocks);
      CHECK(least <= k_lines);
    }
  }
}

}  // namespace flashbound
