// How long counting, computing and bounding take. Times are printed, never asserted.
#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"

#include <benchmark/benchmark.h>
#include <string>

namespace flashbound {
namespace {

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.batch = 64;
  problem.num_heads_q = 16;
  problem.num_heads_kv = 16;
  problem.seqlen_q = seqlen;
  problem.seqlen_kv = seqlen;
  problem.head_dim = head_dim;
  problem.head_dim_v = head_dim;
  problem.window_right = 0;
  return problem;
}

constexpr Tile kTile{.block_q = 64, .block_kv = 64, .panel = 16, .num_splits = 4};

void closed_forms(benchmark::State& state, const Algorithm& algorithm) {
  const Problem problem = square(state.range(0), 64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(closed_form(algorithm.name, problem, kTile, NumberFormat::fp16));
  }
}

void counts(benchmark::State& state, const Algorithm& algorithm, LoopWalk walk) {
  const Problem problem = square(state.range(0), 64);
  const Program program = algorithm.program();
  for (auto _ : state) {
    benchmark::DoNotOptimize(count(program, problem, kTile, NumberFormat::fp16, walk));
  }
}

Problem one_head(Index seqlen, Index head_dim) {
  Problem problem = square(seqlen, head_dim);
  problem.batch = problem.num_heads_q = problem.num_heads_kv = 1;
  problem.window_right = kUnbounded;
  return problem;
}

void references(benchmark::State& state) {
  const Problem problem = one_head(state.range(0), 128);
  const OwnedInputs inputs = normal_inputs(problem, 1);
  for (auto _ : state) benchmark::DoNotOptimize(reference(problem, inputs.view()));
}

void numerics(benchmark::State& state, NumberFormat format) {
  const Problem problem = one_head(state.range(0), 128);
  const OwnedInputs inputs = normal_inputs(problem, 1);
  const Program program = flash2_program();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        run_numeric(program, problem, kTile, inputs.view(), sequence(problem, 0), 0, format));
  }
}

void register_all() {
  for (const Algorithm& algorithm : algorithms()) {
    const std::string name(algorithm.name);
    benchmark::RegisterBenchmark(("closed_form/" + name).c_str(), closed_forms, algorithm)
        ->Arg(Index{1} << 24)
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark(("count/" + name).c_str(), counts, algorithm, LoopWalk::classes)
        ->Arg(8192)
        ->Arg(131072)
        ->Unit(benchmark::kMillisecond);
    // The plain walk, at a size where it can be waited for: the ratio to the line above.
    benchmark::RegisterBenchmark(("count_every_block/" + name).c_str(), counts, algorithm,
                                 LoopWalk::every_block)
        ->Arg(8192)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("reference/d128", references)
      ->Arg(4096)
      ->Unit(benchmark::kMillisecond);
  for (const NumberFormat format : {NumberFormat::fp64, NumberFormat::fp32}) {
    benchmark::RegisterBenchmark(("numeric/flash2/d128/" + std::string(name(format))).c_str(),
                                 numerics, format)
        ->Arg(4096)
        ->Unit(benchmark::kMillisecond);
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
