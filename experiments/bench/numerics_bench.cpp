// How long a program takes in emulated arithmetic, and exact attention. Times are printed, never
// asserted.
#include "core/exact.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "core/quantization.hpp"
#include "experiments/parallel_for.hpp"
#include "experiments/random_inputs.hpp"

#include <benchmark/benchmark.h>
#include <string>

namespace flashbound {
namespace {

constexpr Tile kTile{.block_q = 64, .block_kv = 64};

Problem one_head(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

// flash2 on one head, one core.
void emulated(benchmark::State& state, const Recipe& recipe) {
  const Problem problem = one_head(state.range(0), state.range(1));
  const OwnedInputs inputs = rounded_inputs(recipe, problem, normal_inputs(problem, 1).view());
  const Program program = flash2_program();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        run_numeric(program, problem, kTile, inputs.view(), sequence(problem, 0), 0, recipe));
  }
}

// One head, N = 1024, d = 64, on so many threads.
void exact_forward(benchmark::State& state) {
  const Problem problem = one_head(1024, 64);
  const OwnedInputs inputs = normal_inputs(problem, 1);
  const ParallelFor parallel_for = threaded(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(exact(problem, inputs.view(), {}, parallel_for));
}

void exact_backward(benchmark::State& state) {
  const Problem problem = one_head(1024, 64);
  const OwnedInputs inputs = normal_inputs(problem, 1);
  const OwnedInputs more = normal_inputs(problem, 2);
  const ParallelFor parallel_for = threaded(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        exact_gradients(problem, inputs.view(), more.q.view(), {}, parallel_for));
  }
}

void register_all() {
  for (const char* name :
       {"fp64", "fp32", "all-bf16", "all-fp16", "all-fp32", "flash2-bf16", "flash4-bf16"}) {
    benchmark::RegisterBenchmark(("emulated/" + std::string(name)).c_str(), emulated,
                                 recipe_named(name))
        ->Args({4096, 128})
        ->Unit(benchmark::kMillisecond);
  }
  for (const char* name : {"flash3-fp16", "flash3-fp8", "all-m30"}) {
    benchmark::RegisterBenchmark(("emulated/" + std::string(name)).c_str(), emulated,
                                 recipe_named(name))
        ->Args({1024, 64})
        ->Unit(benchmark::kMillisecond);
  }
  const auto with_threads = [](const char* name, void (*run)(benchmark::State&)) {
    benchmark::RegisterBenchmark(name, run)->Arg(1)->Arg(2)->UseRealTime()->Unit(
        benchmark::kMillisecond);
  };
  with_threads("exact/forward", exact_forward);
  with_threads("exact/backward", exact_backward);
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
