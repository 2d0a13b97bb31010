// Uses the installed headers and calls into the installed archives.
#include "core/problem.hpp"
#include "core/programs.hpp"
#include "core/schedule.hpp"
#include "core/units.hpp"
#include "sim/program_trace.hpp"
#include "sim/stack_curve.hpp"

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
  const Program program = flash2_program();
  const Layout where =
      layout(program, problem, tile, NumberFormat::fp16, LayoutKind::contiguous, 64);
  const AccessTrace trace = line_trace(program, problem, tile, where);
  // The first blocks of K and V, 64 rows of 128 bytes each, are read again by the second block of
  // queries: after themselves, lse (4 lines), and two tiles of O and Q.
  const CapacityCurve curve = stack_curve(trace, StackPolicy::lru);
  const bool reused = breakpoints(curve) == std::vector<Index>{4 * 128 + 4};
  std::printf("%s visits %d of 4 blocks\n", program.name.c_str(), visited);
  return visited == 3 && reused ? 0 : 1;
}
