#include "sim/pebble.hpp"

#include "core/count.hpp"
#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>

namespace flashbound {
namespace {

constexpr Index kStatesMax = 400'000;

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

Index counted_words(const IoCount& count) {
  Elements sum;
  for (const TensorTraffic& t : count.tensors) sum += t.read + t.written;
  return static_cast<Index>(sum.value());
}

Index inputs_of(const std::vector<GraphNode>& graph) {
  return std::count_if(graph.begin(), graph.end(),
                       [](const GraphNode& node) { return node.operands.empty(); });
}
Index outputs_of(const std::vector<GraphNode>& graph) {
  return std::count_if(graph.begin(), graph.end(),
                       [](const GraphNode& node) { return node.output; });
}

// Breadth-first over all positions and all moves of the rules, none of them made at once.
Index optimum_by_brute_force(const std::vector<GraphNode>& graph, int pebbles, Sliding sliding) {
  const auto nodes = static_cast<int>(graph.size());
  const std::size_t sets = std::size_t{1} << nodes;
  std::vector<Index> cost(sets * sets, -1);
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  for (int n = 0; n < nodes; ++n) {
    if (graph[static_cast<std::size_t>(n)].operands.empty()) inputs |= std::size_t{1} << n;
    if (graph[static_cast<std::size_t>(n)].output) outputs |= std::size_t{1} << n;
  }
  std::vector<std::pair<std::size_t, std::size_t>> now{{0, inputs}};
  cost[inputs] = 0;
  for (Index spent = 0; !now.empty(); ++spent) {
    std::vector<std::pair<std::size_t, std::size_t>> later;
    for (std::size_t at = 0; at < now.size(); ++at) {
      const auto [red, blue] = now[at];
      if ((outputs & ~blue) == 0) return spent;
      const auto go = [&, red = red, blue = blue](std::size_t r, std::size_t b, Index more) {
        if (std::popcount(r) > pebbles) return;
        Index& known = cost[r * sets + b];
        if (known >= 0 && known <= spent + more) return;
        known = spent + more;
        (more == 0 ? now : later).emplace_back(r, b);
        (void)red;
        (void)blue;
      };
      for (int n = 0; n < nodes; ++n) {
        const std::size_t bit = std::size_t{1} << n;
        if ((red & bit) != 0) {
          go(red & ~bit, blue, 0);
          go(red, blue | bit, 1);
          continue;
        }
        if ((blue & bit) != 0) go(red | bit, blue, 1);
        const std::vector<int>& operands = graph[static_cast<std::size_t>(n)].operands;
        const bool can =
            !operands.empty() && std::all_of(operands.begin(), operands.end(),
                                             [r = red](int o) { return (r >> o & 1U) != 0; });
        if (!can) continue;
        go(red | bit, blue, 0);
        if (sliding == Sliding::forbidden) continue;
        for (const int o : operands) go((red & ~(std::size_t{1} << o)) | bit, blue, 0);
      }
    }
    now = std::move(later);
    // What was reached more cheaply meanwhile is not wanted twice.
    std::erase_if(now, [&](const auto& p) { return cost[p.first * sets + p.second] <= spent; });
  }
  return -1;
}

std::vector<GraphNode> random_graph(std::mt19937_64& random, int nodes) {
  std::vector<GraphNode> graph;
  for (int n = 0; n < nodes; ++n) {
    GraphNode node;
    for (int o = 0; o < n; ++o) {
      if (random() % static_cast<std::uint64_t>(n) < 2 && node.operands.size() < 3 && n >= 2) {
        node.operands.push_back(o);
      }
    }
    graph.push_back(node);
  }
  for (int n = 0; n < nodes; ++n) {
    const bool used = std::any_of(graph.begin(), graph.end(), [n](const GraphNode& node) {
      return std::find(node.operands.begin(), node.operands.end(), n) != node.operands.end();
    });
    GraphNode& node = graph[static_cast<std::size_t>(n)];
    node.output = !node.operands.empty() && (!used || random() % 4 == 0);
  }
  return graph;
}

}  // namespace

TEST_SUITE("sim.pebble") {
  TEST_CASE("the best play of a small graph is that of a search over all moves") {
    std::mt19937_64 random(1);
    int feasible = 0;
    for (int round = 0; round < 250; ++round) {
      const std::vector<GraphNode> graph = random_graph(random, 3 + static_cast<int>(random() % 6));
      for (int pebbles = 1; pebbles <= 5; ++pebbles) {
        for (const Sliding sliding : {Sliding::allowed, Sliding::forbidden}) {
          const PebbleGame game = best_pebbling(graph, pebbles, sliding, kStatesMax);
          const Index expected = optimum_by_brute_force(graph, pebbles, sliding);
          CAPTURE(round);
          CAPTURE(pebbles);
          if (expected < 0) {
            CHECK(game.verdict == PebbleGame::Verdict::infeasible);
            continue;
          }
          ++feasible;
          REQUIRE(game.verdict == PebbleGame::Verdict::optimum);
          CHECK(game.moved == expected);
          const Replay again = replay(graph, game.moves, pebbles, sliding);
          CHECK_FALSE(again.fault.has_value());
          CHECK(again.loads + again.stores == game.moved);
        }
      }
    }
    CHECK(feasible > 600);
  }

  TEST_CASE("a binary tree in place and not") {
    // Four leaves, two sums, a root: in place three words hold it; without sliding it takes four.
    std::vector<GraphNode> tree(4);
    tree.push_back({.operands = {0, 1}});
    tree.push_back({.operands = {2, 3}});
    tree.push_back({.operands = {4, 5}, .output = true});
    const auto moved = [&](Index pebbles, Sliding sliding) {
      return best_pebbling(tree, pebbles, sliding, kStatesMax).moved;
    };
    CHECK(moved(3, Sliding::allowed) == 5);
    CHECK(moved(4, Sliding::forbidden) == 5);
    CHECK(moved(3, Sliding::forbidden) == 7);  // one sum goes out and comes back
    CHECK(moved(2, Sliding::allowed) == 7);
    CHECK(best_pebbling(tree, 2, Sliding::forbidden, kStatesMax).verdict ==
          PebbleGame::Verdict::infeasible);
  }

  TEST_CASE("a program's own moves are a legal play in its residency that costs its count") {
    int plays = 0;
    for (const Algorithm& algorithm : algorithms()) {
      const Program program = algorithm.program();
      for (Index n = 1; n <= 5; ++n) {
        for (Index d = 1; d <= 3; ++d) {
          for (const bool causal : {false, true}) {
            Problem problem = square(n, d);
            problem.seqlen_kv = n + (d == 2 ? 1 : 0);
            if (causal) problem.window_right = 0;
            for (Index q = 1; q <= n; ++q) {
              for (Index kv = 1; kv <= n; ++kv) {
                // A split without keys would store constants.
                const Index splits = std::min<Index>(2, Partition{n, kv}.count());
                const Tile tile{.block_q = q, .block_kv = kv, .panel = 1, .num_splits = splits};
                const Schedule schedule = schedule_for(problem, tile, sequence(problem, 0));
                const ProgramGraph graph = program_graph(program, schedule);
                const IoCount count = count_head(program, schedule, NumberFormat::fp32);
                const auto peak = static_cast<Index>(count.sram_peak.value());
                const Replay play = replay(graph.nodes, graph.moves, peak, Sliding::allowed);
                CAPTURE(algorithm.name);
                CAPTURE(n);
                CAPTURE(d);
                CAPTURE(q);
                CAPTURE(kv);
                CAPTURE(causal);
                CHECK(play.fault.value_or("") == "");
                // No move carries a constant: masked scores, start values that were charged.
                const bool all_words = !causal && algorithm.name != "flash1-charged-start";
                if (all_words) CHECK(play.loads + play.stores == counted_words(count));
                CHECK(play.loads + play.stores <= counted_words(count));
                ++plays;
              }
            }
          }
        }
      }
    }
    CHECK(plays > 4000);
  }

  TEST_CASE("with words for everything inputs move once and outputs once") {
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      const Problem problem = square(2, 1);
      const Schedule schedule =
          schedule_for(problem, {.block_q = 2, .block_kv = 2}, sequence(problem, 0));
      const ProgramGraph graph = program_graph(algorithm.program(), schedule);
      REQUIRE(graph.nodes.size() <= 64);
      const PebbleGame game = best_pebbling(graph.nodes, 64, Sliding::allowed, kStatesMax);
      REQUIRE(game.verdict == PebbleGame::Verdict::optimum);
      CHECK(game.moved == inputs_of(graph.nodes) + outputs_of(graph.nodes));
    }
  }

  TEST_CASE("a search that is too large says so") {
    const Problem problem = square(2, 2);
    const Schedule schedule =
        schedule_for(problem, {.block_q = 2, .block_kv = 2}, sequence(problem, 0));
    const ProgramGraph graph = program_graph(flash2_program(), schedule);
    CHECK(best_pebbling(graph.nodes, 8, Sliding::allowed, 10).verdict ==
          PebbleGame::Verdict::gave_up);
    CHECK(best_pebbling(std::vector<GraphNode>(65), 8, Sliding::allowed, 10).verdict ==
          PebbleGame::Verdict::gave_up);
  }
}

// Seconds for optimised code.
TEST_SUITE("sim.pebble_long") {
  TEST_CASE("no program moves less than the best play of its graph in the same fast memory") {
    int decided = 0;
    int met = 0;
    std::string table;
    for (const Algorithm& algorithm : algorithms()) {
      const Program program = algorithm.program();
      for (const auto& [n, d] : {std::pair<Index, Index>{2, 1}, {3, 1}, {4, 1}, {2, 2}}) {
        const Problem problem = square(n, d);
        for (const auto& [q, kv] : {std::pair<Index, Index>{1, 1}, {1, n}, {n, 1}, {n, n}}) {
          const Tile tile{.block_q = q, .block_kv = kv, .panel = 1, .num_splits = 1};
          const Schedule schedule = schedule_for(problem, tile, sequence(problem, 0));
          const ProgramGraph graph = program_graph(program, schedule);
          const IoCount count = count_head(program, schedule, NumberFormat::fp32);
          const auto peak = static_cast<Index>(count.sram_peak.value());
          const PebbleGame game =
              best_pebbling(graph.nodes, peak, Sliding::allowed, kStatesMax / 2);
          if (game.verdict == PebbleGame::Verdict::gave_up) continue;
          const std::string what = std::string(algorithm.name) + " N=" + std::to_string(n) +
                                   " d=" + std::to_string(d) + " tile " + std::to_string(q) + "x" +
                                   std::to_string(kv) + " M=" + std::to_string(peak);
          CAPTURE(what);
          ++decided;
          REQUIRE(game.verdict == PebbleGame::Verdict::optimum);
          CHECK(game.moved <= counted_words(count));
          CHECK(game.moved >= inputs_of(graph.nodes) + outputs_of(graph.nodes));
          met += game.moved == counted_words(count) ? 1 : 0;
          table += what + ": best " + std::to_string(game.moved) + ", program " +
                   std::to_string(counted_words(count)) + "\n";
        }
      }
    }
    MESSAGE(decided << " instances decided, " << met << " met by their program\n" << table);
    CHECK(decided >= 20);
    CHECK(met >= 1);
  }
}

}  // namespace flashbound
