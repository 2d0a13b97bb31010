// A* over positions of the game: which nodes are in fast memory, which in slow. Some moves cost no
// freedom and are made at once, for a position with more pebbles is never worse:
//   - a node is computed as soon as it can be into a free word;
//   - an output is stored as soon as it is computed, since it must be, once;
//   - a stored output that nothing is computed from is dropped.
// What is left to choose is what to compute or load, whose word to take for it, and whether that is
// stored first: no node need be stored before its word is taken.
#include "sim/pebble.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <queue>
#include <unordered_map>

namespace flashbound {
namespace {

using Set = std::uint64_t;
constexpr std::size_t kNodesMax = 64;

Set single(int node) { return Set{1} << node; }

template <class Visit>
void for_each(Set set, const Visit& visit) {
  for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}

struct Position {
  Set red = 0;
  Set blue = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

struct PositionHash {
  std::size_t operator()(const Position& p) const {
    return static_cast<std::size_t>((p.red * 0x9e3779b97f4a7c15U) ^
                                    ((p.blue + 0x7f4a7c15U) * 0xbf58476d1ce4e5b9U));
  }
};

struct Reached {
  Index cost = 0;
  bool closed = false;
  Position from{};
  std::vector<PebbleMove> by{};
};

class Search {
 public:
  Search(const std::vector<GraphNode>& graph, Index red_pebbles, Sliding sliding, Index states_max)
      : size_(static_cast<int>(graph.size())),
        pebbles_(static_cast<int>(red_pebbles)),
        sliding_(sliding),
        states_max_(states_max) {
    for (const GraphNode& node : graph) {
      Set operands = 0;
      for (const int operand : node.operands) {
        operands |= single(operand);
        used_ |= single(operand);
      }
      const int index = static_cast<int>(operands_.size());
      if (operands == 0) inputs_ |= single(index);
      if (node.output) outputs_ |= single(index);
      operands_.push_back(operands);
    }
  }

  PebbleGame run() {
    const Position start{0, inputs_};
    reach(start, 0, start, {});
    while (!open_.empty()) {
      const Position here = open_.top().position;
      open_.pop();
      Reached& reached = known_.at(here);
      if (reached.closed) continue;
      reached.closed = true;
      if ((outputs_ & ~here.blue) == 0) return played(here);
      if (static_cast<Index>(known_.size()) > states_max_) {
        return {.verdict = PebbleGame::Verdict::gave_up,
                .states = static_cast<Index>(known_.size())};
      }
      expand(here, reached.cost);
    }
    return {.verdict = PebbleGame::Verdict::infeasible,
            .states = static_cast<Index>(known_.size())};
  }

 private:
  struct Open {
    Index estimate = 0;
    Index cost = 0;
    Position position{};
    // Cheapest first; of equals the one that has come further.
    bool operator<(const Open& other) const {
      return estimate != other.estimate ? estimate > other.estimate : cost < other.cost;
    }
  };

  // Every output that is not stored yet is stored. Every node that is in no memory but needed is
  // computed, so that its operands are needed; inputs that are needed and not in fast memory are
  // loaded.
  Index still_to_move(const Position& p) const {
    Index moves = std::popcount(outputs_ & ~p.blue);
    Set needed = outputs_ & ~p.blue & ~p.red;
    Set seen = needed;
    while (needed != 0) {
      const int node = std::countr_zero(needed);
      needed &= needed - 1;
      if ((single(node) & inputs_) != 0) {
        ++moves;
        continue;
      }
      const Set more =
          operands_[static_cast<std::size_t>(node)] & ~p.red & ~seen & (~p.blue | inputs_);
      seen |= more;
      needed |= more;
    }
    return moves;
  }

  Set computable(const Position& p) const {
    Set set = 0;
    for (int node = 0; node < size_; ++node) {
      const Set operands = operands_[static_cast<std::size_t>(node)];
      if (operands != 0 && (operands & ~p.red) == 0) set |= single(node);
    }
    return set & ~p.red;
  }

  // Stores and drops outputs; fills free words with what can be computed.
  Index settle(Position& p, std::vector<PebbleMove>& by) const {
    Index cost = 0;
    while (true) {
      for_each(p.red & outputs_ & ~p.blue, [&](int node) {
        by.push_back({PebbleOp::store, node});
        p.blue |= single(node);
        ++cost;
      });
      for_each(p.red & outputs_ & ~used_, [&](int node) {
        by.push_back({PebbleOp::drop, node});
        p.red &= ~single(node);
      });
      // A stored output that nothing needs is not computed again.
      const Set next = computable(p) & ~(outputs_ & p.blue & ~used_);
      if (next == 0 || std::popcount(p.red) >= pebbles_) return cost;
      const int node = std::countr_zero(next);
      by.push_back({PebbleOp::compute, node});
      p.red |= single(node);
    }
  }

  void expand(const Position& here, Index cost) {
    const Set wanted = computable(here) & ~(outputs_ & here.blue & ~used_);
    if (std::popcount(here.red) < pebbles_) {
      // Nothing can be computed: else settle() would have done it.
      for_each(here.blue & ~here.red & used_, [&](int node) {
        Position next{here.red | single(node), here.blue};
        advance(here, next, cost + 1, {{PebbleOp::load, node}});
      });
      return;
    }
    for_each(here.red, [&](int victim) {
      for_each(wanted, [&](int node) { take_word(here, cost, victim, node, PebbleOp::compute); });
      for_each(here.blue & ~here.red & used_,
               [&](int node) { take_word(here, cost, victim, node, PebbleOp::load); });
    });
  }

  // The word of `victim` for `node`; a victim in no other memory is stored first, or lost.
  void take_word(const Position& here, Index cost, int victim, int node, PebbleOp op) {
    const bool operand = op == PebbleOp::compute &&
                         (operands_[static_cast<std::size_t>(node)] & single(victim)) != 0;
    if (operand && sliding_ == Sliding::forbidden) return;
    const Set red = (here.red & ~single(victim)) | single(node);
    for (const bool save : {false, true}) {
      if (save && (here.blue & single(victim)) != 0) continue;
      std::vector<PebbleMove> by;
      if (save) by.push_back({PebbleOp::store, victim});
      if (!operand) by.push_back({PebbleOp::drop, victim});
      by.push_back({op, node, operand ? victim : -1});
      const Position next{red, save ? here.blue | single(victim) : here.blue};
      advance(here, next, cost + (save ? 1 : 0) + (op == PebbleOp::load ? 1 : 0), std::move(by));
    }
  }

  void advance(const Position& from, Position to, Index cost, std::vector<PebbleMove> by) {
    cost += settle(to, by);
    reach(to, cost, from, std::move(by));
  }

  void reach(const Position& to, Index cost, const Position& from, std::vector<PebbleMove> by) {
    const auto [found, fresh] = known_.try_emplace(to);
    if (!fresh && found->second.cost <= cost) return;
    found->second = {cost, false, from, std::move(by)};
    open_.push({cost + still_to_move(to), cost, to});
  }

  PebbleGame played(Position at) const {
    PebbleGame game{.verdict = PebbleGame::Verdict::optimum,
                    .moved = known_.at(at).cost,
                    .states = static_cast<Index>(known_.size())};
    std::vector<const Reached*> path;
    for (const Reached* r = &known_.at(at); !r->by.empty(); r = &known_.at(r->from)) {
      path.push_back(r);
    }
    for (auto r = path.rbegin(); r != path.rend(); ++r) {
      game.moves.insert(game.moves.end(), (*r)->by.begin(), (*r)->by.end());
    }
    return game;
  }

  int size_;
  int pebbles_;
  Sliding sliding_;
  Index states_max_;
  std::vector<Set> operands_;
  Set inputs_ = 0;
  Set outputs_ = 0;
  Set used_ = 0;  // operands of some node
  std::unordered_map<Position, Reached, PositionHash> known_;
  std::priority_queue<Open> open_;
};

}  // namespace

PebbleGame best_pebbling(const std::vector<GraphNode>& graph, Index red_pebbles, Sliding sliding,
                         Index states_max) {
  if (graph.size() > kNodesMax) return {};
  if (red_pebbles < 1) return {.verdict = PebbleGame::Verdict::infeasible};
  return Search(graph, std::min<Index>(red_pebbles, kNodesMax), sliding, states_max).run();
}

Replay replay(const std::vector<GraphNode>& graph, const std::vector<PebbleMove>& moves,
              Index red_pebbles, Sliding sliding) {
  Replay result;
  std::vector<bool> red(graph.size(), false);
  std::vector<bool> blue(graph.size(), false);
  for (std::size_t n = 0; n < graph.size(); ++n) blue[n] = graph[n].operands.empty();
  Index held = 0;
  const auto fault = [&](std::size_t at, const std::string& what) {
    result.fault = "move " + std::to_string(at) + ": " + what;
    return result;
  };
  for (std::size_t at = 0; at < moves.size(); ++at) {
    const PebbleMove& move = moves[at];
    const auto node = static_cast<std::size_t>(move.node);
    switch (move.op) {
      case PebbleOp::load:
        if (!blue[node]) return fault(at, "loads what slow memory has not");
        ++result.loads;
        held += red[node] ? 0 : 1;
        red[node] = true;
        break;
      case PebbleOp::store:
        if (!red[node]) return fault(at, "stores what fast memory has not");
        ++result.stores;
        blue[node] = true;
        break;
      case PebbleOp::drop:
        if (!red[node]) return fault(at, "drops what fast memory has not");
        red[node] = false;
        --held;
        break;
      case PebbleOp::compute: {
        const std::vector<int>& operands = graph[node].operands;
        if (operands.empty()) return fault(at, "computes an input");
        for (const int operand : operands) {
          if (!red[static_cast<std::size_t>(operand)]) return fault(at, "lacks an operand");
        }
        if (move.over >= 0) {
          const bool is_operand =
              std::find(operands.begin(), operands.end(), move.over) != operands.end();
          if (!is_operand || sliding == Sliding::forbidden) return fault(at, "may not slide");
          red[static_cast<std::size_t>(move.over)] = false;
          --held;
        }
        held += red[node] ? 0 : 1;
        red[node] = true;
        break;
      }
    }
    result.red_peak = std::max(result.red_peak, held);
    if (held > red_pebbles) return fault(at, "needs more words than there are");
  }
  for (std::size_t n = 0; n < graph.size(); ++n) {
    if (graph[n].output && !blue[n]) return fault(moves.size(), "an output is not stored");
  }
  return result;
}

}  // namespace flashbound
