#include "sim/program_trace.hpp"

#include "core/errors.hpp"
#include "core/programs.hpp"
#include "sim/trace.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/sim/lru_by_hand.hpp"

#include <doctest/doctest.h>

#include <functional>

namespace flashbound {
namespace {

constexpr LayoutKind kKinds[] = {LayoutKind::contiguous, LayoutKind::strided, LayoutKind::padded};

std::string rejection(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing rejected";
}

struct Case {
  std::string what{};
  Program program{};
  Problem problem{};
  Tile tile{};
  Layout where{};
};

// Layouts and lines vary with the seed; without `masked` no window and no block mask.
Case random_layout(std::uint64_t seed, const Algorithm& algorithm, bool masked) {
  constexpr NumberFormat kDtypes[] = {NumberFormat::fp16, NumberFormat::fp32,
                                      NumberFormat::fp8e4m3};
  testing::RandomCase random = testing::random_case(seed);
  if (!masked) {
    random.problem.window_left = random.problem.window_right = kUnbounded;
    random.problem.block_mask.reset();
  }
  Case c{std::string(algorithm.name) + ": " + testing::describe(random), algorithm.program(),
         random.problem, random.tile};
  c.where = layout(c.program, c.problem, c.tile, kDtypes[seed / 3 % 3], kKinds[seed % 3],
                   Index{1} << (seed / 9 % 6));
  return c;
}

void check_equal(const CapacityCurve& a, const CapacityCurve& b) {
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    CAPTURE(a.tensors[t].tensor);
    CHECK(a.tensors[t] == b.tensors[t]);
  }
}

AccessTrace tiles(const Case& c, const TraceOptions& options = {}) {
  TileTrace result = tile_trace(c.program, c.problem, c.tile, c.where, options);
  REQUIRE(result.trace.has_value());
  return *result.trace;
}

bool is_exact(const Case& c) {
  return tile_trace(c.program, c.problem, c.tile, c.where).trace.has_value();
}

Case flash2_case(Index seqlen, Index block_q, Index head_dim, Index line) {
  Case c{.program = flash2_program()};
  c.problem = {
      .seqlen_q = seqlen, .seqlen_kv = seqlen, .head_dim = head_dim, .head_dim_v = head_dim};
  c.tile = {.block_q = block_q, .block_kv = block_q};
  c.where = layout(c.program, c.problem, c.tile, NumberFormat::fp16, LayoutKind::contiguous, line);
  return c;
}

}  // namespace

TEST_SUITE_BEGIN("program_trace");

TEST_CASE("a fast-forwarded trace has the curve of the whole one") {
  int exact = 0;
  int forwarded = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    for (const bool masked : {false, true}) {
      for (const Algorithm& algorithm : algorithms()) {
        const Case c = random_layout(seed, algorithm, masked);
        if (!is_exact(c)) continue;
        ++exact;
        const AccessTrace shorter = tiles(c);
        if (shorter.repeats.empty()) continue;
        ++forwarded;
        CAPTURE(seed);
        CAPTURE(c.what);
        check_equal(testing::lru_by_hand(shorter),
                    testing::lru_by_hand(tiles(c, {.fast_forward = false})));
      }
    }
  }
  CHECK(exact > 7000);
  CHECK(forwarded > 1000);
}

TEST_CASE("tiles have the curve of their lines wherever they may stand for them") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const Algorithm& algorithm : algorithms()) {
      const Case c = random_layout(seed, algorithm, seed % 2 == 0);
      if (!is_exact(c)) continue;
      const AccessTrace lines = line_trace(c.program, c.problem, c.tile, c.where);
      if (lines.accesses.size() > 6000) continue;  // slow by hand
      ++compared;
      CAPTURE(seed);
      CAPTURE(c.what);
      check_equal(testing::lru_by_hand(tiles(c)), testing::lru_by_hand(lines));
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("a trace of lines is the runs of the trace machine") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Case c = random_layout(seed, algorithms()[seed % algorithms().size()], true);
    CAPTURE(c.what);
    std::vector<std::uint32_t> expected;
    bool right_tensor = true;
    const AccessTrace lines = line_trace(c.program, c.problem, c.tile, c.where);
    trace(c.program, c.problem, c.tile, c.where, Granularity::line, [&](const AccessRun& run) {
      for (Index i = 0; i < run.units; ++i) {
        const auto unit = static_cast<std::uint32_t>(run.address / c.where.line_bytes + i);
        expected.push_back(2 * unit + (run.write ? 1 : 0));
        right_tensor = right_tensor && lines.unit_tensor[unit] == run.tensor;
      }
    });
    CHECK(lines.accesses == expected);
    CHECK(right_tensor);
    CHECK(lines.unit_count() * c.where.line_bytes == c.where.bytes);
    CHECK(lines.unit_lines.empty());
  }
}

TEST_CASE("the steady loop of flash2 is two iterations of which the second repeats") {
  const Case c = flash2_case(8 * 4 + 1, 4, 8, 16);
  const AccessTrace trace = tiles(c);
  // q, nine blocks of k and v, o, lse: 21 accesses in each of 9 iterations, the last one ragged.
  CHECK(trace.accesses.size() == 3 * 21);
  CHECK(trace.repeats == std::vector<AccessTrace::Repeat>{{21, 42, 7}});
  CHECK(tiles(c, {.fast_forward = false}).accesses.size() == 9 * 21);
}

TEST_CASE("where iterations differ nothing is fast-forwarded") {
  const auto repeats = [](const Algorithm& algorithm, const std::function<void(Problem&)>& change) {
    Case c = flash2_case(32, 4, 8, 16);
    c.program = algorithm.program();
    c.tile.num_splits = 4;
    change(c.problem);
    c.where = layout(c.program, c.problem, c.tile, NumberFormat::fp32, LayoutKind::contiguous, 16);
    return tiles(c).repeats.size();
  };
  const auto unchanged = [](Problem&) {};
  const auto causal = [](Problem& p) { p.window_right = 0; };
  const auto grouped = [](Problem& p) { p.num_heads_q = 3; };
  const auto two_heads = [](Problem& p) { p.num_heads_q = p.num_heads_kv = 2; };
  CHECK(repeats(algorithm_named("flash2"), unchanged) == 1);
  CHECK(repeats(algorithm_named("flash2"), causal) == 0);
  CHECK(repeats(algorithm_named("flash2"), grouped) == 3);
  CHECK(repeats(algorithm_named("flash2"), two_heads) == 2);
  // Keys are outer: with a group they come again with the next head.
  CHECK(repeats(algorithm_named("flash1"), unchanged) == 1);
  CHECK(repeats(algorithm_named("flash1"), grouped) == 0);
  CHECK(repeats(algorithm_named("flash1"), two_heads) == 2);
  // The last kernel reads what an earlier one wrote.
  CHECK(repeats(algorithm_named("standard"), unchanged) == 0);
  CHECK(repeats(algorithm_named("split-kv"), unchanged) == 0);
  // The first step differs from the others.
  CHECK(repeats(algorithm_named("flash1-skip-first-read"), unchanged) == 0);
  CHECK(repeats(algorithm_named("flash1-backward"), unchanged) == 1);
  CHECK(repeats(algorithm_named("flash2-backward"), unchanged) == 1);
}

TEST_CASE("tiles that share lines or overlap are refused with the reason") {
  const auto why_not = [](const Program& program, Tile tile, LayoutKind kind, Index heads) {
    Problem problem{.seqlen_q = 64, .seqlen_kv = 64, .head_dim = 32, .head_dim_v = 32};
    problem.num_heads_q = problem.num_heads_kv = heads;
    const Layout where = layout(program, problem, tile, NumberFormat::fp16, kind, 64);
    const TileTrace result = tile_trace(program, problem, tile, where);
    CHECK(result.trace.has_value() == result.why_not.empty());
    return result.why_not;
  };
  const LayoutKind contiguous = LayoutKind::contiguous;
  CHECK(why_not(flash2_program(), {16, 16}, contiguous, 2) == "");
  CHECK(why_not(flash2_program(), {8, 16}, contiguous, 1) ==
        "tiles of tensor 'lse' share lines of 64 bytes");
  CHECK(why_not(small_cache_program(), {32, 32, 32}, contiguous, 1) == "");
  CHECK(why_not(small_cache_program(), {32, 32, 16}, contiguous, 1) ==
        "tensor 's' moves in tiles of 32 x 32 and of 32 x 16");
  // Sixteen halves are half a line: s is left with one cut, q is not.
  Tile narrow{.block_q = 32, .block_kv = 16, .panel = 16};
  CHECK(why_not(small_cache_program(), narrow, contiguous, 1) ==
        "tiles of tensor 'q' share lines of 64 bytes");
  CHECK(why_not(standard_tiled_program(), {16, 16}, contiguous, 1) ==
        "tiles of tensor 's' share lines of 64 bytes");
  CHECK(why_not(standard_tiled_program(), {16, 32}, LayoutKind::strided, 4) == "");
}

TEST_CASE("a packed sequence that begins inside a line is refused") {
  // One head: rows of 8 halves, 16 bytes, so that sequence 1 begins at byte 16 times its row.
  const auto is_refused = [](Index second) {
    Problem problem{.seqlen_q = 8, .seqlen_kv = 8, .head_dim = 8, .head_dim_v = 8};
    problem.cu_seqlens_q = problem.cu_seqlens_kv = {0, second, 8};
    Case c{.program = rabe_staats_program(), .problem = problem, .tile = {4, 4}};
    c.where = layout(c.program, problem, c.tile, NumberFormat::fp16, LayoutKind::contiguous, 64);
    return !is_exact(c);
  };
  CHECK_FALSE(is_refused(4));
  CHECK(is_refused(3));
  CHECK(is_refused(2));
}

TEST_CASE("tensors left out take neither accesses nor units with them") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case c = random_layout(seed, algorithm_named("flash2"), true);
    CAPTURE(c.what);
    TraceOptions options{.without = {"k", "lse"}};
    const AccessTrace some = line_trace(c.program, c.problem, c.tile, c.where, options);
    const AccessTrace all = line_trace(c.program, c.problem, c.tile, c.where);
    CHECK(some.tensors == std::vector<std::string>{"q", "v", "o"});
    // The same accesses in the same order, each by its tensor and its line within it.
    const auto by_tensor = [](const AccessTrace& trace) {
      std::vector<std::size_t> first(trace.tensors.size(), trace.unit_tensor.size());
      for (std::size_t u = trace.unit_tensor.size(); u > 0; --u)
        first[trace.unit_tensor[u - 1]] = u - 1;
      std::vector<std::pair<std::string, std::size_t>> list;
      for (const std::uint32_t access : trace.accesses) {
        const std::size_t tensor = trace.unit_tensor[access / 2];
        const std::string& name = trace.tensors[tensor];
        if (name != "k" && name != "lse") list.emplace_back(name, access - 2 * first[tensor]);
      }
      return list;
    };
    CHECK(by_tensor(some) == by_tensor(all));
  }
}

TEST_CASE("one head is its part of the whole trace") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Case c = random_layout(seed, algorithms()[seed % algorithms().size()], true);
    CAPTURE(c.what);
    std::vector<std::uint32_t> joined;
    TraceOptions options;
    for (Index s = 0; s < sequence_count(c.problem); ++s) {
      for (Index head = 0; head < c.problem.num_heads_q; ++head) {
        options.only = OneHead{s, head};
        const AccessTrace part = line_trace(c.program, c.problem, c.tile, c.where, options);
        joined.insert(joined.end(), part.accesses.begin(), part.accesses.end());
      }
    }
    CHECK(joined == line_trace(c.program, c.problem, c.tile, c.where).accesses);
  }
}

TEST_CASE("what no trace can hold is rejected before it is begun") {
  const auto reject_lines = [](const Case& c, const TraceOptions& options = {}) {
    return rejection([&] { line_trace(c.program, c.problem, c.tile, c.where, options); });
  };
  const auto reject_tiles = [](const Case& c, const TraceOptions& options = {}) {
    return rejection([&] { tile_trace(c.program, c.problem, c.tile, c.where, options); });
  };
  const std::string accesses = "trace_accesses = more than 1073741824: must be at most 1073741824";
  CHECK(reject_lines(flash2_case(Index{1} << 24, 64, 64, 64)) == accesses);
  CHECK(reject_tiles(flash2_case(Index{1} << 28, 64, 64, 64), {.fast_forward = false}) == accesses);
  // Four tensors of 2^30 rows of 256 bytes, and lse.
  CHECK(reject_lines(flash2_case(Index{1} << 30, Index{1} << 30, 128, 64)) ==
        "trace_lines = 17246978048: must be at most 2147483648");
  // Five tensors of 2^30 tiles.
  CHECK(reject_tiles(flash2_case(Index{1} << 31, 2, 8, 8)) ==
        "trace_tiles = 5368709120: must be at most 2147483648");
  const Case small = flash2_case(8, 4, 8, 16);
  CHECK(reject_lines(small, {.without = {"x"}}) == "without = x: must be a tensor of flash2");
  CHECK(reject_lines(small, {.only = OneHead{0, 1}}) == "only.head = 1: must be in [0, 0]");
  CHECK(reject_tiles(small, {.only = OneHead{-1, 0}}) == "only.sequence = -1: must be in [0, 0]");
}

TEST_SUITE_END();

}  // namespace flashbound
