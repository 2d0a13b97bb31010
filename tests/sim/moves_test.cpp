#include "sim/moves.hpp"

#include "core/programs.hpp"
#include "core/record.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

namespace flashbound {
namespace {

struct Moved {
  int tensor = 0;
  bool write = false;
  Index split = 0;
  Interval rows{};
  Interval cols{};
  friend bool operator==(const Moved&, const Moved&) = default;
};

// What the record machine logs of the tensors that `kept` marks.
std::vector<Moved> logged(const Program& program, const Schedule& schedule,
                          const std::vector<bool>& kept) {
  std::vector<Moved> moved;
  record(program, schedule, NumberFormat::fp16, [&](const Event& event) {
    const Statement& s = *event.statement;
    if (event.tensor == nullptr || !kept[static_cast<std::size_t>(s.tensor)]) return;
    moved.push_back({s.tensor, s.op == Op::store, event.split == kNone ? 0 : event.split,
                     event.rows, event.cols});
  });
  return moved;
}

}  // namespace

TEST_SUITE_BEGIN("moves");

TEST_CASE("moves are the loads and stores of the record log and their number is counted") {
  for (std::uint64_t seed = 0; seed < 1200; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const Schedule schedule =
        schedule_for(random.problem, random.tile, sequence(random.problem, 0));
    for (const Algorithm& algorithm : algorithms()) {
      const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
      CAPTURE(what);
      const Program program = algorithm.program();
      std::vector<bool> kept;
      for (std::size_t t = 0; t < program.tensors.size(); ++t) {
        kept.push_back(seed % 3 != 0 || (seed >> (t % 8)) % 2 == 0);
      }
      const std::vector<MoveNode> moves = moves_of(program, kept);
      MoveWalk walk{program, schedule};
      std::vector<Moved> walked;
      walk.run(moves, [&](const Move& move) {
        walked.push_back({move.tensor, move.write, walk.block(move.split), walk.interval(move.rows),
                          walk.interval(move.cols)});
      });
      CHECK(walked == logged(program, schedule, kept));
      const auto count = static_cast<Index>(walked.size());
      CHECK(count_moves(walk, moves, Index{1} << 30) == count);
      CHECK(count_moves(walk, moves, count) == count);
      for (const Index limit : {count / 2, count - 1}) {
        if (limit >= 0 && limit < count) CHECK(count_moves(walk, moves, limit) > limit);
      }
    }
  }
}

TEST_SUITE_END();

}  // namespace flashbound
