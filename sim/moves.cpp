#include "sim/moves.hpp"

#include <algorithm>
#include <cstddef>

namespace flashbound {
namespace {

Move move_of(const Statement& s) {
  const std::size_t axes = s.region.size();
  return {.tensor = s.tensor,
          .write = s.op == Op::store,
          .split = axes == 3 ? s.region[0].loop : kNone,
          .rows = s.region[axes - 2],
          .cols = s.region[axes - 1]};
}

void append_moves(const std::vector<Statement>& body, const std::vector<bool>& kept,
                  std::vector<MoveNode>& nodes) {
  for (const Statement& s : body) {
    if (s.op == Op::kernel) append_moves(s.body, kept, nodes);
    if (s.op == Op::loop) {
      MoveNode loop{.loop = s.loop};
      append_moves(s.body, kept, loop.body);
      if (!loop.body.empty()) nodes.push_back(loop);
    }
    if ((s.op == Op::load || s.op == Op::store) && kept[static_cast<std::size_t>(s.tensor)]) {
      nodes.push_back({.move = move_of(s)});
    }
  }
}

// Neither factor is negative, and both are at most limit + 1 or a count of blocks.
Index product_up_to(Index limit, Index a, Index b) {
  const Int128 product = checked_mul(a, b);
  return product > limit ? limit + 1 : static_cast<Index>(product);
}

}  // namespace

std::vector<MoveNode> moves_of(const Program& program, const std::vector<bool>& kept) {
  std::vector<MoveNode> nodes;
  append_moves(program.body, kept, nodes);
  return nodes;
}

std::vector<Move> listed(const std::vector<MoveNode>& nodes) {
  std::vector<Move> moves;
  for (const MoveNode& node : nodes) {
    if (node.loop == kNone) {
      moves.push_back(node.move);
    } else {
      const std::vector<Move> inner = listed(node.body);
      moves.insert(moves.end(), inner.begin(), inner.end());
    }
  }
  return moves;
}

bool ranges_depend_on(const Program& program, const std::vector<MoveNode>& nodes, int loop) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const MoveNode& node) {
    if (node.loop == kNone) return false;
    const LoopRange& range = program.loops[static_cast<std::size_t>(node.loop)].range;
    return range.of == loop || range.split == loop || ranges_depend_on(program, node.body, loop);
  });
}

Index count_moves(MoveWalk& walk, const std::vector<MoveNode>& nodes, Index limit) {
  Index total = 0;
  for (const MoveNode& node : nodes) {
    if (node.loop == kNone) {
      ++total;
    } else if (const LoopBlocks blocks = walk.blocks(node.loop);
               !ranges_depend_on(walk.program, node.body, node.loop)) {
      total += product_up_to(limit, blocks.count(), count_moves(walk, node.body, limit));
    } else {
      for_each_block(blocks, [&](Index block) {
        if (total > limit) return;
        walk.environment[static_cast<std::size_t>(node.loop)] = block;
        total += count_moves(walk, node.body, limit);
      });
    }
    if (total > limit) return limit + 1;
  }
  return total;
}

}  // namespace flashbound
