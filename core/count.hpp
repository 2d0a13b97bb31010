// The count machine: what a program moves, holds and computes on a schedule, exactly.
#pragma once

#include "core/io_count.hpp"
#include "core/problem.hpp"
#include "core/program.hpp"

namespace flashbound {

// How the machine goes through loops. Both give the same counts; `classes` visits one block of
// each size and multiplies wherever the body depends on the block's size alone.
enum class LoopWalk { classes, every_block };

// One head of one sequence.
IoCount count_head(const Program& program, const Schedule& schedule, NumberFormat dtype,
                   LoopWalk walk = LoopWalk::classes);

// The whole problem: all sequences and query heads. Every query head reads its own K and V.
IoCount count(const Program& program, const Problem& problem, const Tile& tile, NumberFormat dtype,
              LoopWalk walk = LoopWalk::classes);

}  // namespace flashbound
