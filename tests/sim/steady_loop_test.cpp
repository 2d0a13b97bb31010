// Fast-forwarding and whole tiles are exact for programs that nobody has written: random loops
// around random moves.
#include "sim/program_trace.hpp"
#include "tests/sim/lru_by_hand.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace flashbound {
namespace {

using Engine = std::mt19937_64;

int below(Engine& engine, std::size_t n) { return static_cast<int>(engine() % n); }

class RandomProgram {
 public:
  // With `agreeing` all regions of a tensor come from one cut of it.
  RandomProgram(std::uint64_t seed, bool agreeing) : engine_(seed), agreeing_(agreeing) {
    add_tensor("kv", TensorRole::input, {Axis::key, Axis::head_dim});
    add_tensor("q", TensorRole::input, {Axis::query, Axis::head_dim});
    add_tensor("s", TensorRole::intermediate, {Axis::query, Axis::key});
    add_tensor("part", TensorRole::intermediate, {Axis::split, Axis::query, Axis::head_dim});
    add_tensor("square", TensorRole::output, {Axis::query, Axis::query});
    for (int kernel = 0; kernel <= below(engine_, 2); ++kernel) {
      program_.body.push_back({.op = Op::kernel});
      fill(program_.body.back().body, 0);
    }
  }
  const Program& program() const { return program_; }

 private:
  void add_tensor(const std::string& name, TensorRole role, std::vector<Axis> axes) {
    std::vector<bool> cut;  // into blocks; else moved whole, so that all its regions agree
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      cut.push_back(axes[axis] == Axis::split || below(engine_, 3) > 0);
    }
    program_.tensors.push_back({.name = name, .role = role, .axes = std::move(axes)});
    cut_.push_back(cut);
  }
  void fill(std::vector<Statement>& body, int depth) {
    const int statements = 1 + below(engine_, depth == 0 ? 2 : 3);
    for (int n = 0; n < statements; ++n) {
      if (depth < 3 && below(engine_, depth == 0 ? 8 : 2) != 0) {
        add_loop(body, depth);
      } else {
        add_move(body);
      }
    }
  }
  void add_loop(std::vector<Statement>& body, int depth) {
    constexpr Axis kAxes[] = {Axis::query, Axis::key, Axis::query, Axis::head_dim, Axis::split};
    const Axis axis = kAxes[below(engine_, 5)];
    Statement loop{.op = Op::loop, .loop = static_cast<int>(program_.loops.size())};
    program_.loops.push_back({.name = "loop", .range = range_over(axis)});
    running_.push_back({axis, loop.loop});
    fill(loop.body, depth + 1);
    running_.pop_back();
    body.push_back(loop);
  }
  // One of the running loops over an axis, or kNone.
  int running(Axis axis) {
    std::vector<int> loops;
    for (const Extent& extent : running_) {
      if (extent.axis == axis) loops.push_back(extent.loop);
    }
    return loops.empty() ? kNone : loops[static_cast<std::size_t>(below(engine_, loops.size()))];
  }
  // All blocks of the axis, or those seen from a running loop.
  LoopRange range_over(Axis axis) {
    const bool seen = below(engine_, 2) == 0;
    const int query = running(Axis::query);
    const int key = running(Axis::key);
    const int split = running(Axis::split);
    switch (axis) {
      case Axis::query: {
        if (!seen) return {RangeKind::all_q_blocks};
        if (key == kNone) return {RangeKind::q_blocks_without_keys};
        constexpr RangeKind kSeen[] = {RangeKind::visible_q_blocks, RangeKind::starting_q_blocks,
                                       RangeKind::continuing_q_blocks};
        return {kSeen[below(engine_, 3)], key};
      }
      case Axis::key:
        if (!seen || query == kNone) return {RangeKind::all_kv_blocks};
        if (split == kNone) return {RangeKind::visible_kv_blocks, query};
        return {RangeKind::visible_kv_blocks_split, query, split};
      case Axis::split: return {RangeKind::splits};
      default: return {RangeKind::head_dim_panels};
    }
  }
  // Of a tensor whose cut axes all have a running loop.
  void add_move(std::vector<Statement>& body) {
    Statement move{.op = below(engine_, 2) == 0 ? Op::load : Op::store};
    const auto tensor = static_cast<std::size_t>(below(engine_, 5));
    move.tensor = static_cast<int>(tensor);
    for (std::size_t n = 0; n < cut_[tensor].size(); ++n) {
      const Axis axis = program_.tensors[tensor].axes[n];
      const bool other = !agreeing_ && axis != Axis::split && below(engine_, 8) == 0;
      const bool cut = cut_[tensor][n] != other;
      const int loop = cut ? running(axis) : kNone;
      if (cut && loop == kNone) return;
      move.region.push_back({axis, loop});
    }
    body.push_back(move);
  }

  Engine engine_;
  bool agreeing_;
  Program program_{"random", {}, {}, {}, {}};
  std::vector<std::vector<bool>> cut_{};
  std::vector<Extent> running_{};
};

// Mostly without a mask: few of the others have a steady loop.
Problem random_problem(Engine& engine) {
  Problem problem{.batch = 1 + below(engine, 2),
                  .num_heads_q = 2,
                  .num_heads_kv = 1 + below(engine, 2),
                  .seqlen_q = 1 + below(engine, 12),
                  .seqlen_kv = 1 + below(engine, 8),
                  .head_dim = 4,
                  .head_dim_v = 4};
  const int mask = below(engine, 8);
  if (mask == 0) problem.window_right = below(engine, 6);
  if (mask == 1) problem.window_left = below(engine, 6);
  if (mask == 2) {
    BlockMask cells{.block_q = 2, .block_kv = 3};
    cells.rows = Partition{problem.seqlen_q, cells.block_q}.count();
    cells.cols = Partition{problem.seqlen_kv, cells.block_kv}.count();
    for (Index cell = 0; cell < cells.rows * cells.cols; ++cell) {
      cells.cells.push_back(below(engine, 3) > 0 ? 1 : 0);
    }
    problem.block_mask = cells;
  }
  return problem;
}

Tile random_tile(Engine& engine) {
  return {.block_q = 1 + below(engine, 3),
          .block_kv = 2,
          .panel = 1 + below(engine, 2),
          .num_splits = 1 + below(engine, 4)};
}

}  // namespace

TEST_SUITE_BEGIN("steady_loop");

TEST_CASE("the repeats of random programs leave no curve changed") {
  int forwarded = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const Program program = RandomProgram(seed, true).program();
    Engine engine(~seed);
    const Problem problem = random_problem(engine);
    const Tile tile = random_tile(engine);
    const Layout where =
        layout(program, problem, tile, NumberFormat::fp16, LayoutKind::contiguous, 2);
    const TileTrace shorter = tile_trace(program, problem, tile, where);
    REQUIRE(shorter.why_not == "");
    if (shorter.trace->repeats.empty()) continue;
    ++forwarded;
    const TileTrace whole = tile_trace(program, problem, tile, where, {.fast_forward = false});
    CAPTURE(seed);
    CHECK(testing::lru_by_hand(*shorter.trace) == testing::lru_by_hand(*whole.trace));
  }
  CHECK(forwarded > 1000);
}

TEST_CASE("tiles of random programs have the curve of their lines unless they are refused") {
  constexpr LayoutKind kKinds[] = {LayoutKind::contiguous, LayoutKind::strided, LayoutKind::padded};
  int compared = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const Program program = RandomProgram(seed, false).program();
    Engine engine(~seed);
    const Problem problem = random_problem(engine);
    const Tile tile = random_tile(engine);
    const Layout where = layout(program, problem, tile, NumberFormat::fp16, kKinds[seed % 3],
                                Index{2} << below(engine, 4));
    const TileTrace tiles = tile_trace(program, problem, tile, where);
    if (!tiles.trace) {
      ++refused;
      continue;
    }
    const AccessTrace lines = line_trace(program, problem, tile, where);
    if (lines.accesses.size() > 5000) continue;  // slow by hand
    ++compared;
    CAPTURE(seed);
    CHECK(testing::lru_by_hand(*tiles.trace) == testing::lru_by_hand(lines));
  }
  CHECK(compared > 1000);
  CHECK(refused > 1000);
}

TEST_SUITE_END();

}  // namespace flashbound
