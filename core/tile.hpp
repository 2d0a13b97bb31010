// How a schedule cuts its axes into blocks.
#pragma once

#include "core/host_device.hpp"
#include "core/mask.hpp"

namespace flashbound {

struct Tile {
  Index block_q = 64;    // B_r of the paper: queries in a block
  Index block_kv = 64;   // B_c of the paper: keys in a block
  Index panel = 1;       // small-cache: head_dim columns, or keys, in a product's panel;
                         // divides block_kv
  Index num_splits = 1;  // split-kv: parts into which the keys are split
  friend constexpr bool operator==(const Tile&, const Tile&) = default;
};

// [0, length) in blocks of `block`; the last one may be ragged.
struct Partition {
  Index length = 0;
  Index block = 1;

  FLASHBOUND_HD constexpr Index count() const { return (length + block - 1) / block; }
  FLASHBOUND_HD constexpr Interval interval(Index index) const {
    const Index begin = index * block;
    const Index end = begin + block;
    return {begin, end < length ? end : length};
  }
  // Size of the last block where it is smaller than the others, else 0.
  FLASHBOUND_HD constexpr Index ragged() const { return length % block; }
  // Indices of the blocks that meet `part`.
  FLASHBOUND_HD constexpr Interval blocks(Interval part) const {
    if (part.empty()) return {};
    return {part.begin / block, (part.end - 1) / block + 1};
  }
};

}  // namespace flashbound
