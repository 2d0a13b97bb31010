// Gives a program's symbolic ranges and extents their sizes on a schedule. Every bound comes from
// Schedule; this file only looks up which of its answers a loop asks for.
#pragma once

#include "core/program.hpp"
#include "core/schedule.hpp"

#include <optional>
#include <vector>

namespace flashbound {

// The block index of every running loop, by loop number.
using Environment = std::vector<Index>;

// The blocks of a loop, in order. `filter` drops blocks of `run` that a block mask empties.
struct LoopBlocks {
  Partition partition;
  Interval run;
  std::optional<BlockRange> filter;

  Index count() const { return filter ? filter->count() : run.size(); }
};

LoopBlocks loop_blocks(const LoopRange& range, const Schedule& schedule,
                       const Environment& environment);

// Calls visit(index) for each block in order.
template <class Visit>
void for_each_block(const LoopBlocks& blocks, const Visit& visit) {
  if (blocks.filter) {
    for (const Block block : *blocks.filter) visit(block.index);
  } else {
    for (Index index = blocks.run.begin; index < blocks.run.end; ++index) visit(index);
  }
}

// What an extent spans: rows, keys or columns of the head.
Interval interval_of(const Extent& extent, const Schedule& schedule, const Program& program,
                     const Environment& environment);

}  // namespace flashbound
