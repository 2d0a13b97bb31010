// The graph machine: the words that a program computes, as a graph, and the moves by which it does.
//
// A node is a value of one word: an element of an input, or the result of one step of an operation.
// Sums grow by a fused multiply-add: the node after a step has the sum before it and the two
// factors as operands, and products take no word of their own. Maxima and sums along a row take an
// element a step. Scaling and masking of scores change no word and are no node; a masked score, and
// what an accumulator holds before its first step, is a constant that needs no word. Storing and
// loading is no computation: a loaded element is the node that was stored there.
#pragma once

#include "core/program.hpp"
#include "core/schedule.hpp"

#include <vector>

namespace flashbound {

struct GraphNode {
  std::vector<int> operands{};  // nodes that must be in fast memory to compute it; none: an input
  bool output = false;          // must be in slow memory at the end
  friend bool operator==(const GraphNode&, const GraphNode&) = default;
};

enum class PebbleOp {
  load,     // from slow memory
  store,    // to slow memory
  compute,  // in a word of its own, or in that of the operand `over`, which is lost
  drop,     // from fast memory
};

struct PebbleMove {
  PebbleOp op = PebbleOp::load;
  int node = -1;
  int over = -1;  // of a computation
  friend bool operator==(const PebbleMove&, const PebbleMove&) = default;
};

struct ProgramGraph {
  std::vector<GraphNode> nodes{};
  std::vector<PebbleMove> moves{};  // the program's own; a word held twice is moved once
};

// One head. `schedule` has no sink to begin with. The moves load and store as often as the count
// machine counts, unless one tile is loaded while another holds the same elements.
ProgramGraph program_graph(const Program& program, const Schedule& schedule);

}  // namespace flashbound
