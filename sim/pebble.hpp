// The red-blue pebble game of Hong and Kung 1981, played perfectly on small graphs: the least that
// must move between slow memory (blue pebbles) and a fast memory of M words (red ones) to compute a
// graph's outputs from its inputs. Recomputation is allowed. A node may be computed into the word
// of one of its operands (sliding), as programs work in place.
#pragma once

#include "sim/graph.hpp"

#include <optional>
#include <string>
#include <vector>

namespace flashbound {

enum class Sliding { allowed, forbidden };

struct PebbleGame {
  enum class Verdict {
    optimum,
    infeasible,  // no play computes the outputs in M words
    gave_up,     // more states than allowed: nothing is known
  };
  Verdict verdict = Verdict::gave_up;
  Index moved = 0;                  // loads and stores of the best play
  std::vector<PebbleMove> moves{};  // one best play
  Index states = 0;                 // looked at
};

// The inputs are in slow memory at the start, where they stay; the outputs are there at the end. At
// most 64 nodes, else it gives up at once.
PebbleGame best_pebbling(const std::vector<GraphNode>& graph, Index red_pebbles, Sliding sliding,
                         Index states_max);

// What a play costs, or why it is none: the second way to a game's result.
struct Replay {
  std::optional<std::string> fault{};
  Index loads = 0;
  Index stores = 0;
  Index red_peak = 0;
};
Replay replay(const std::vector<GraphNode>& graph, const std::vector<PebbleMove>& moves,
              Index red_pebbles, Sliding sliding);

}  // namespace flashbound
