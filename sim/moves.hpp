// A program's loads and stores alone: the loops around them, and the region that each one moves.
// Loop bounds and regions are those of core/program_ranges.hpp.
#pragma once

#include "core/program.hpp"
#include "core/program_ranges.hpp"
#include "core/schedule.hpp"

#include <vector>

namespace flashbound {

// One load or store. Its region spans `rows` x `cols` of the matrix of `split`.
struct Move {
  int tensor = kNone;
  bool write = false;
  int split = kNone;  // loop over splits, of a tensor with a split axis
  Extent rows{};
  Extent cols{};
};

// A move, or a loop around others.
struct MoveNode {
  int loop = kNone;  // kNone: a move
  Move move{};
  std::vector<MoveNode> body{};
};

// The moves of tensors that `kept` marks, in order: loops without any are left out, and kernels
// follow each other without a mark between them.
std::vector<MoveNode> moves_of(const Program& program, const std::vector<bool>& kept);

// Each move of the tree once, loops or not.
std::vector<Move> listed(const std::vector<MoveNode>& nodes);

// A program's moves on one schedule, while its loops run.
struct MoveWalk {
  const Program& program;
  const Schedule& schedule;
  Environment environment{Environment(program.loops.size(), 0)};

  LoopBlocks blocks(int loop) const {
    return loop_blocks(program.loops[static_cast<std::size_t>(loop)].range, schedule, environment);
  }
  Index block(int loop) const {  // 0 where no loop cuts the axis
    return loop == kNone ? 0 : environment[static_cast<std::size_t>(loop)];
  }
  Interval interval(const Extent& extent) const {
    return interval_of(extent, schedule, program, environment);
  }

  // Calls visit(move) for each move of `nodes` in order; the environment holds its blocks.
  template <class Visit>
  void run(const std::vector<MoveNode>& nodes, const Visit& visit) {
    for (const MoveNode& node : nodes) {
      if (node.loop == kNone) {
        visit(node.move);
      } else {
        for_each_block(blocks(node.loop), [&](Index block) { run_block(node, block, visit); });
      }
    }
  }
  // One iteration of a loop.
  template <class Visit>
  void run_block(const MoveNode& loop, Index block, const Visit& visit) {
    environment[static_cast<std::size_t>(loop.loop)] = block;
    run(loop.body, visit);
  }
};

// Whether the blocks of a loop in `nodes` depend on the block of loop `loop`.
bool ranges_depend_on(const Program& program, const std::vector<MoveNode>& nodes, int loop);

// How many moves `nodes` make, or some number above `limit` where they are more.
Index count_moves(MoveWalk& walk, const std::vector<MoveNode>& nodes, Index limit);

}  // namespace flashbound
