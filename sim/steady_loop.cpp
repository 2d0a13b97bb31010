#include "sim/steady_loop.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace flashbound {
namespace {

// The axes, as bits, along which a move's region is the block of `loop`.
unsigned axes_of(const Move& move, int loop) {
  return (move.split == loop ? 1U : 0U) | (move.rows.loop == loop ? 2U : 0U) |
         (move.cols.loop == loop ? 4U : 0U);
}

// Whether every loop of `nodes` has the same blocks whichever of `blocks` the loop `outer` is at.
bool ranges_constant(MoveWalk& walk, const std::vector<MoveNode>& nodes, int outer,
                     Interval blocks) {
  for (const MoveNode& node : nodes) {
    if (node.loop == kNone) continue;
    const LoopRange& range = walk.program.loops[static_cast<std::size_t>(node.loop)].range;
    if (range.split == outer) return false;
    if (range.of == outer) {
      if (range.split != kNone) return false;  // seen from another loop as well
      Index& at = walk.environment[static_cast<std::size_t>(outer)];
      at = blocks.begin;
      const Interval first = walk.blocks(node.loop).run;
      for (; at < blocks.end; ++at) {
        const LoopBlocks now = walk.blocks(node.loop);
        if (now.filter || now.run != first) return false;
      }
      at = blocks.begin;
    }
    if (!ranges_constant(walk, node.body, outer, blocks)) return false;
  }
  return true;
}

// Conditions 2 and 3 for one tensor: its moves within the loop and elsewhere.
bool fresh_or_stationary(const std::vector<Move>& inside, bool elsewhere, bool shared, int loop) {
  if (inside.empty()) return !shared || !elsewhere;
  const unsigned axes = axes_of(inside.front(), loop);
  for (const Move& move : inside) {
    if (axes_of(move, loop) != axes) return false;
  }
  const bool fresh = axes != 0;
  return fresh ? !elsewhere && !shared : !shared || !elsewhere;
}

std::vector<Move> of_tensor(const std::vector<Move>& moves, std::size_t tensor) {
  std::vector<Move> its;
  std::copy_if(moves.begin(), moves.end(), std::back_inserter(its),
               [&](const Move& move) { return static_cast<std::size_t>(move.tensor) == tensor; });
  return its;
}

// Index of the last node that moves anything; nodes.size() where none does.
std::size_t last_moving(MoveWalk& walk, const std::vector<MoveNode>& nodes) {
  for (std::size_t n = nodes.size(); n > 0; --n) {
    const std::vector<MoveNode> one{nodes[n - 1]};
    if (count_moves(walk, one, 0) > 0) return n - 1;
  }
  return nodes.size();
}

}  // namespace

std::optional<SteadyLoop> steady_loop(const Program& program, const std::vector<MoveNode>& moves,
                                      const Schedule& schedule, const std::vector<bool>& shared) {
  MoveWalk walk{program, schedule};
  const std::size_t last = last_moving(walk, moves);
  if (last == moves.size() || moves[last].loop == kNone) return std::nullopt;
  const MoveNode& loop = moves[last];
  const LoopBlocks blocks = walk.blocks(loop.loop);
  if (blocks.filter) return std::nullopt;
  SteadyLoop steady{.node = last, .blocks = blocks.run};
  steady.ragged = blocks.partition.ragged() != 0 && blocks.run.end == blocks.partition.count();
  steady.times = blocks.run.size() - (steady.ragged ? 1 : 0) - 1;
  if (steady.times < 2) return std::nullopt;
  if (!ranges_constant(walk, loop.body, loop.loop, blocks.run)) return std::nullopt;

  const std::vector<Move> all = listed(moves);
  const std::vector<Move> inside = listed(loop.body);
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const std::vector<Move> its = of_tensor(inside, t);
    const bool elsewhere = of_tensor(all, t).size() > its.size();
    if (!fresh_or_stationary(its, elsewhere, shared[t], loop.loop)) return std::nullopt;
  }
  return steady;
}

}  // namespace flashbound
