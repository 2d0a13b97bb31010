// How fast the least over all tiles is found for every size of fast memory, beside a plain loop
// over the same tiles in the same run. Items a second are tiles evaluated; printed, never asserted.
#include "core/closed_form.hpp"
#include "core/footprint.hpp"
#include "core/programs.hpp"
#include "sim/tile_candidates.hpp"
#include "sim/tile_search.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <optional>
#include <string>
#include <vector>

namespace flashbound {
namespace {

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

// 1 KiB to 1 GiB, a sixteenth apart.
std::vector<Bytes> capacities() {
  std::vector<Bytes> all;
  for (Index sram = 1024; sram <= Index{1} << 30; sram += sram / 16) all.emplace_back(sram);
  return all;
}

void finish(benchmark::State& state, Index tiles, std::size_t read_at) {
  state.SetItemsProcessed(tiles);
  state.counters["capacities"] = static_cast<double>(read_at);
}

// All forward algorithms, merged and read at every capacity.
void envelopes(benchmark::State& state, FootprintKind footprint) {
  const Problem problem = square(state.range(0), 64);
  const std::vector<Bytes> sizes = capacities();
  Index tiles = 0;
  for (auto _ : state) {
    std::vector<Staircase> all;
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      all.push_back(staircase(algorithm, problem, {.footprint = footprint, .stages = 2}));
    }
    const Staircase merged = envelope(all);
    tiles += merged.tried;
    Bytes sum;
    for (const Bytes sram : sizes) {
      if (const StairPoint* point = merged.at(sram)) sum += point->moved();
    }
    benchmark::DoNotOptimize(sum);
  }
  finish(state, tiles, sizes.size());
}

// The peer: the closed form with its named tensors for each of the same tiles, compared with the
// best so far at every capacity that holds it.
void plain_loops(benchmark::State& state, FootprintKind footprint) {
  const Problem problem = square(state.range(0), 64);
  const std::vector<Bytes> sizes = capacities();
  constexpr NumberFormat kDtype = NumberFormat::fp16;
  Index tiles = 0;
  for (auto _ : state) {
    std::vector<std::optional<Bytes>> least(sizes.size());
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      const Program program = algorithm.program();
      const TileCandidates candidates = tile_candidates(algorithm.name, problem);
      for (const Index block_q : candidates.block_q) {
        for (const Index block_kv : candidates.block_kv) {
          const Tile tile{.block_q = block_q, .block_kv = block_kv};
          const IoCount count = closed_form(algorithm.name, problem, tile, kDtype);
          const Bytes moved = hbm_bytes(count);
          const Bytes sram =
              footprint == FootprintKind::uniform
                  ? bytes_of(count.sram_peak, byte_size(kDtype))
                  : kernel_footprint(program, schedule_for(problem, tile, sequence(problem, 0)),
                                     kDtype, 2);
          ++tiles;
          for (std::size_t at = sizes.size(); at-- > 0 && sizes[at] >= sram;) {
            if (!least[at] || moved < *least[at]) least[at] = moved;
          }
        }
      }
    }
    benchmark::DoNotOptimize(least.data());
  }
  finish(state, tiles, sizes.size());
}

// One point of a sweep: the counts of one tile, by name.
void single_points(benchmark::State& state, const std::string& algorithm, Index window_right) {
  Problem problem = square(state.range(0), 64);
  problem.window_right = window_right;
  Index block = 0;
  for (auto _ : state) {
    block = block % 512 + 1;
    const Tile tile{.block_q = block, .block_kv = block};
    benchmark::DoNotOptimize(closed_form(algorithm, problem, tile, NumberFormat::fp16));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

void register_all() {
  constexpr Index kSeqlen = 131072;
  for (const FootprintKind footprint : {FootprintKind::uniform, FootprintKind::kernel}) {
    const std::string kind(name(footprint));
    benchmark::RegisterBenchmark(("envelope/" + kind).c_str(), envelopes, footprint)
        ->Arg(kSeqlen)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("plain_loop/" + kind).c_str(), plain_loops, footprint)
        ->Arg(kSeqlen)
        ->Unit(benchmark::kMillisecond);
  }
  for (const char* algorithm : {"flash2", "small-cache"}) {
    benchmark::RegisterBenchmark(("point/full/" + std::string(algorithm)).c_str(), single_points,
                                 algorithm, kUnbounded)
        ->Arg(kSeqlen);
    benchmark::RegisterBenchmark(("point/causal/" + std::string(algorithm)).c_str(), single_points,
                                 algorithm, 0)
        ->Arg(kSeqlen);
  }
}

}  // namespace
}  // namespace flashbound

int main(int argc, char** argv) {
  flashbound::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
