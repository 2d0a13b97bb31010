// How fast all capacities come out of one pass, beside plain ways to the same distances in the same
// run. Accesses a second are printed, never asserted.
#include "core/programs.hpp"
#include "experiments/bench/bench_traces.hpp"
#include "experiments/sweep_plan.hpp"
#include "experiments/sweep_rows.hpp"
#include "sim/lru_stack.hpp"
#include "sim/memory_levels.hpp"
#include "sim/opt_distances.hpp"
#include "sim/program_trace.hpp"
#include "sim/stack_curve.hpp"

#include <benchmark/benchmark.h>
#include <functional>
#include <list>
#include <queue>
#include <sstream>
#include <string>

namespace flashbound {
namespace {

constexpr Index kTouches = 16842752;  // those of flash2 with N = 16384 and blocks of 64

const BenchTrace& trace_named(const std::string& name) {
  static const BenchTrace flash2 = flash2_lines(16384, 64);
  static const BenchTrace uniform = uniform_lines(131072, kTouches);
  static const BenchTrace zipf = zipf_lines(Index{1} << 20, kTouches);
  return name == "flash2" ? flash2 : name == "uniform" ? uniform : zipf;
}

void report(benchmark::State& state, std::size_t accesses) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(accesses));
}

void lru(benchmark::State& state, const std::string& name) {
  const BenchTrace& trace = trace_named(name);
  std::vector<std::uint64_t> histogram(static_cast<std::size_t>(trace.unit_count) + 1);
  for (auto _ : state) {
    LruStack stack(trace.unit_count);
    constexpr std::size_t kAhead = 16;
    for (std::size_t at = 0; at < trace.units.size(); ++at) {
      if (at + kAhead < trace.units.size()) stack.prefetch(trace.units[at + kAhead]);
      ++histogram[stack.touch(trace.units[at])];
    }
    benchmark::DoNotOptimize(histogram.data());
  }
  report(state, trace.units.size());
}

// The peer: Bennett and Kruskal's sums as a Fenwick tree with a leaf an access.
void lru_fenwick(benchmark::State& state, const std::string& name) {
  const BenchTrace& trace = trace_named(name);
  const std::size_t accesses = trace.units.size();
  std::vector<std::uint64_t> histogram(static_cast<std::size_t>(trace.unit_count) + 1);
  for (auto _ : state) {
    std::vector<std::int32_t> sums(accesses + 1, 0);
    std::vector<std::size_t> last(static_cast<std::size_t>(trace.unit_count), 0);
    const auto add = [&](std::size_t at, std::int32_t by) {
      for (; at <= accesses; at += at & (~at + 1)) sums[at] += by;
    };
    std::int32_t live = 0;
    for (std::size_t t = 1; t <= accesses; ++t) {
      std::size_t& before = last[trace.units[t - 1]];
      std::int32_t distance = 0;
      if (before == 0) {
        ++live;
      } else {
        distance = live;
        for (std::size_t at = before - 1; at > 0; at -= at & (~at + 1)) distance -= sums[at];
        add(before, -1);
      }
      add(t, 1);
      before = t;
      ++histogram[static_cast<std::size_t>(distance)];
    }
    benchmark::DoNotOptimize(histogram.data());
  }
  report(state, accesses);
}

// The peer by the book: Mattson's list, searched from the top. Few accesses, since each takes as
// long as its distance.
void lru_list(benchmark::State& state, const std::string& name) {
  const BenchTrace& trace = trace_named(name);
  constexpr std::size_t kAccesses = 140000;
  for (auto _ : state) {
    std::list<std::uint32_t> stack;
    std::size_t sum = 0;
    for (std::size_t t = 0; t < kAccesses; ++t) {
      auto at = stack.begin();
      for (; at != stack.end() && *at != trace.units[t]; ++at) ++sum;
      if (at != stack.end()) stack.erase(at);
      stack.push_front(trace.units[t]);
    }
    benchmark::DoNotOptimize(sum);
  }
  report(state, kAccesses);
}

void opt(benchmark::State& state, const std::string& name) {
  const BenchTrace& trace = trace_named(name);
  for (auto _ : state) {
    benchmark::DoNotOptimize(opt_distances(trace.units, trace.unit_count));
  }
  report(state, trace.units.size());
}

void opt_division(benchmark::State& state, const std::string& name) {
  const BenchTrace& trace = trace_named(name);
  for (auto _ : state) {
    benchmark::DoNotOptimize(opt_distances_by_division(trace.units, trace.unit_count));
  }
  report(state, trace.units.size());
}

// The peer: Belady's policy for one capacity, with a heap of next uses.
void belady_one_capacity(benchmark::State& state, const std::string& name) {
  const BenchTrace& trace = trace_named(name);
  const std::size_t capacity = 16384;
  for (auto _ : state) {
    std::vector<std::size_t> next(trace.units.size());
    std::vector<std::size_t> seen(static_cast<std::size_t>(trace.unit_count), next.size());
    for (std::size_t t = next.size(); t-- > 0;) {
      next[t] = seen[trace.units[t]];
      seen[trace.units[t]] = t;
    }
    std::vector<std::size_t> due(static_cast<std::size_t>(trace.unit_count), 0);  // 0: not held
    std::priority_queue<std::pair<std::size_t, std::uint32_t>> heap;
    std::size_t held = 0;
    std::size_t misses = 0;
    for (std::size_t t = 0; t < next.size(); ++t) {
      const std::uint32_t unit = trace.units[t];
      if (due[unit] == 0) {
        ++misses;
        ++held;
        while (held > capacity) {
          const auto [when, furthest] = heap.top();
          heap.pop();
          if (due[furthest] != when) continue;
          due[furthest] = 0;
          --held;
        }
      }
      due[unit] = next[t] + 1;
      heap.emplace(due[unit], unit);
    }
    benchmark::DoNotOptimize(misses);
  }
  report(state, trace.units.size());
}

// From the program to the curve of every capacity, by tiles; items are the line accesses stood for.
void tiles_all_capacities(benchmark::State& state, Index block, bool causal) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = 131072;
  problem.head_dim = problem.head_dim_v = 64;
  if (causal) problem.window_right = 0;
  const Tile tile{.block_q = block, .block_kv = block};
  const Program program = flash2_program();
  const Layout where =
      layout(program, problem, tile, NumberFormat::fp16, LayoutKind::contiguous, 64);
  Int128 accesses = 0;
  for (auto _ : state) {
    const CapacityCurve curve =
        stack_curve(*tile_trace(program, problem, tile, where).trace, StackPolicy::lru);
    accesses = 0;
    for (const CacheTraffic& t : traffic_at(curve, 0)) accesses += t.read_misses + t.write_misses;
  }
  report(state, static_cast<std::size_t>(accesses));
}

// One set-associative cache of 1 MiB on the flash2 trace.
void one_cache(benchmark::State& state, Replacement policy) {
  const BenchTrace& lines = trace_named("flash2");
  AccessTrace trace{.line_bytes = 64, .tensors = {"all"}};
  trace.unit_tensor.assign(static_cast<std::size_t>(lines.unit_count), 0);
  for (const std::uint32_t unit : lines.units) trace.accesses.push_back(AccessTrace::read(unit));
  const std::vector<CacheLevel> levels{
      {.name = "cache", .capacity = Bytes(1 << 20), .ways = 16, .policy = policy}};
  for (auto _ : state) benchmark::DoNotOptimize(simulate_levels(levels, trace));
  report(state, trace.accesses.size());
}

// Count at points of a sweep, closed form alone, as rows of JSON.
void sweep_points_to_lines(benchmark::State& state) {
  const std::vector<std::string> words{
      "--seqlen", "64:6464:+16", "--block-q",   "16:1600:+16", "--algorithm",
      "flash2",   "--method",    "closed-form", "--output",    "x"};
  const SweepPlan plan = sweep_plan(parse_options(*verb_named("sweep"), words));
  const Index points = 20000;
  for (auto _ : state) {
    Options options = plan.base;
    std::ostringstream lines;
    for (Index begin = 0; begin < points; begin += 64) {
      Document document = sweep_document(plan.base.verb());
      for (Index point = begin; point < std::min(points, begin + 64); ++point) {
        set_point(plan, point, options);
        append_point(options, point, document);
      }
      write(lines, document, Format::jsonl, "");
    }
    benchmark::DoNotOptimize(lines.str().size());
  }
  report(state, static_cast<std::size_t>(points));
}

void register_all() {
  using Run = void (*)(benchmark::State&, const std::string&);
  const auto add = [](const std::string& what, Run run, const std::string& name) {
    benchmark::RegisterBenchmark((what + "/" + name).c_str(), run, name)
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.2);
  };
  for (const char* name : {"flash2", "uniform", "zipf"}) {
    add("lru", lru, name);
    add("lru_fenwick", lru_fenwick, name);
    add("lru_list", lru_list, name);
    add("opt", opt, name);
    add("opt_division", opt_division, name);
    add("belady_one_capacity", belady_one_capacity, name);
  }
  for (const Index block : {Index{64}, Index{128}}) {
    for (const bool causal : {false, true}) {
      const std::string name =
          "tiles_all_capacities/131072/" + std::to_string(block) + (causal ? "/causal" : "/full");
      benchmark::RegisterBenchmark(name.c_str(), tiles_all_capacities, block, causal)
          ->Unit(benchmark::kMillisecond);
    }
  }
  for (const Replacement policy :
       {Replacement::lru, Replacement::fifo, Replacement::plru, Replacement::opt}) {
    benchmark::RegisterBenchmark(("one_cache/" + std::string(name(policy))).c_str(), one_cache,
                                 policy)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("sweep/closed-form", sweep_points_to_lines)
      ->Unit(benchmark::kMillisecond);
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
