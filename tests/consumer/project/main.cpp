// Uses the installed headers and calls into the installed archive.
#include "core/problem.hpp"
#include "core/programs.hpp"
#include "core/schedule.hpp"
#include "core/units.hpp"

#include <cstdio>

int main() {
  using namespace flashbound;

  Problem problem;
  problem.seqlen_q = 128;
  problem.seqlen_kv = 128;
  problem.head_dim = 64;
  problem.head_dim_v = 64;
  problem.window_right = 0;
  Tile tile;
  tile.block_q = 64;
  tile.block_kv = 64;

  const Schedule schedule = schedule_for(problem, tile, sequence(problem, 0));
  int visited = 0;
  for (Index i = 0; i < schedule.q_block_count(); ++i) {
    for ([[maybe_unused]] const Block& block : schedule.kv_blocks(i)) ++visited;
  }
  std::printf("%s visits %d of 4 blocks\n", algorithm_named("flash2").name.data(), visited);
  return visited == 3 ? 0 : 1;
}
