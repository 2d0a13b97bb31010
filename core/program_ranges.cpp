#include "core/program_ranges.hpp"

#include <cstddef>

namespace flashbound {
namespace {

Partition partition_of(RangeKind kind, const Schedule& schedule) {
  switch (kind) {
    case RangeKind::all_q_blocks:
    case RangeKind::visible_q_blocks:
    case RangeKind::starting_q_blocks:
    case RangeKind::continuing_q_blocks:
    case RangeKind::q_blocks_without_keys: return schedule.q_partition();
    case RangeKind::all_kv_blocks:
    case RangeKind::visible_kv_blocks:
    case RangeKind::visible_kv_blocks_split: return schedule.kv_partition();
    case RangeKind::visible_key_panels: return schedule.with_key_panels().kv_partition();
    case RangeKind::head_dim_panels: return {schedule.shape.head_dim, schedule.tile.panel};
    case RangeKind::head_dim_v_blocks: return {schedule.shape.head_dim_v, schedule.tile.block_kv};
    case RangeKind::splits: return {schedule.tile.num_splits, 1};
  }
  return {};
}

LoopBlocks of_range(const BlockRange& range) {
  if (range.contiguous()) return {range.partition(), range.run(), std::nullopt};
  return {range.partition(), range.run(), range};
}

Index length_of(Axis axis, const Shape& shape) {
  switch (axis) {
    case Axis::query: return shape.seqlen_q;
    case Axis::key: return shape.seqlen_kv;
    case Axis::head_dim: return shape.head_dim;
    case Axis::head_dim_v: return shape.head_dim_v;
    case Axis::one:
    case Axis::split: return 1;
  }
  return 1;
}

}  // namespace

LoopBlocks loop_blocks(const LoopRange& range, const Schedule& schedule,
                       const Environment& environment) {
  const auto block_of = [&](int loop) { return environment[static_cast<std::size_t>(loop)]; };
  switch (range.kind) {
    case RangeKind::visible_kv_blocks: return of_range(schedule.kv_blocks(block_of(range.of)));
    case RangeKind::visible_kv_blocks_split:
      return of_range(schedule.kv_blocks(block_of(range.of), block_of(range.split)));
    case RangeKind::visible_q_blocks: return of_range(schedule.q_blocks(block_of(range.of)));
    case RangeKind::starting_q_blocks:
      return of_range(schedule.q_blocks_starting_at(block_of(range.of)));
    case RangeKind::continuing_q_blocks:
      return of_range(schedule.q_blocks_continuing_at(block_of(range.of)));
    case RangeKind::q_blocks_without_keys: return of_range(schedule.q_blocks_without_keys());
    case RangeKind::visible_key_panels:
      return of_range(schedule.with_key_panels().kv_blocks(block_of(range.of)));
    default: {
      const Partition partition = partition_of(range.kind, schedule);
      return {partition, {0, partition.count()}, std::nullopt};
    }
  }
}

Interval interval_of(const Extent& extent, const Schedule& schedule, const Program& program,
                     const Environment& environment) {
  if (extent.loop == kNone) return {0, length_of(extent.axis, schedule.shape)};
  const auto loop = static_cast<std::size_t>(extent.loop);
  return partition_of(program.loops[loop].range.kind, schedule).interval(environment[loop]);
}

}  // namespace flashbound
