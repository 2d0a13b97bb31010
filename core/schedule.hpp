// The one source of loop bounds and mask edges. A Schedule is a small value for one sequence of
// one head: {shape, mask, tile}. It only answers questions; kernels write their own loops over
// its ranges. Constexpr, host and device.
#pragma once

#include "core/host_device.hpp"
#include "core/mask.hpp"
#include "core/tile.hpp"

namespace flashbound {

struct Shape {
  Index seqlen_q = 0;
  Index seqlen_kv = 0;
  Index head_dim = 0;
  Index head_dim_v = 0;
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

// One block of a range: its index, what it spans, and how much of it the mask shows.
struct Block {
  Index index = 0;
  Interval span{};  // keys of a kv block, queries of a q block
  Coverage coverage = Coverage::empty;
  friend constexpr bool operator==(const Block&, const Block&) = default;
};

class BlockRange;

struct Schedule {
  Shape shape{};
  Mask mask{};
  Tile tile{};

  FLASHBOUND_HD constexpr Partition q_partition() const { return {shape.seqlen_q, tile.block_q}; }
  FLASHBOUND_HD constexpr Partition kv_partition() const {
    return {shape.seqlen_kv, tile.block_kv};
  }
  FLASHBOUND_HD constexpr Index q_block_count() const { return q_partition().count(); }
  FLASHBOUND_HD constexpr Index kv_block_count() const { return kv_partition().count(); }
  FLASHBOUND_HD constexpr Interval q_rows(Index i) const { return q_partition().interval(i); }
  FLASHBOUND_HD constexpr Interval kv_rows(Index j) const { return kv_partition().interval(j); }

  // Blocks of keys that some query of block i sees, in increasing order.
  FLASHBOUND_HD constexpr BlockRange kv_blocks(Index i) const;
  // The part of kv_blocks(i) in split s. A split is ceil(kv_block_count / num_splits) blocks
  // whatever the mask, as FlashAttention's split-KV kernel has it; late splits may be empty.
  FLASHBOUND_HD constexpr BlockRange kv_blocks(Index i, Index split) const;
  // Blocks of queries that see some key of block j, in increasing order.
  FLASHBOUND_HD constexpr BlockRange q_blocks(Index j) const;
  // q_blocks(j) in two parts: those for which j is the first block they see, and the others.
  FLASHBOUND_HD constexpr BlockRange q_blocks_starting_at(Index j) const;
  FLASHBOUND_HD constexpr BlockRange q_blocks_continuing_at(Index j) const;
  // Blocks of queries that see no key at all.
  FLASHBOUND_HD constexpr BlockRange q_blocks_without_keys() const;

  FLASHBOUND_HD constexpr Band band() const {
    return {shape.seqlen_q, shape.seqlen_kv, mask.window_left, mask.window_right};
  }
  FLASHBOUND_HD constexpr bool visible(Index query, Index key) const {
    const Interval keys = band().keys(query);
    return key >= keys.begin && key < keys.end && mask.blocks.allows(query, key);
  }
  FLASHBOUND_HD constexpr Coverage coverage(Interval rows, Interval keys) const;

  // The same problem cut otherwise.
  FLASHBOUND_HD constexpr Schedule with_tile(Tile other) const { return {shape, mask, other}; }
  // Keys cut into contraction panels instead of blocks.
  FLASHBOUND_HD constexpr Schedule with_key_panels() const {
    Tile panels = tile;
    panels.block_kv = tile.panel;
    return with_tile(panels);
  }
};

// A lazily filtered run of blocks along one axis, seen from one block of the other axis.
// Contiguous when the mask is a band; a block mask can leave holes.
class BlockRange {
 public:
  enum class Along { keys, queries };
  // Which blocks of the run belong to the range.
  enum class Keep { visible, starting, continuing, invisible };

  FLASHBOUND_HD constexpr BlockRange(const Schedule& schedule, Along along, Interval across,
                                     Interval run, Keep keep)
      : schedule_(schedule), along_(along), across_(across), run_(run), keep_(keep) {}

  class Iterator {
   public:
    FLASHBOUND_HD constexpr Iterator(const BlockRange* range, Index index)
        : range_(range), index_(index) {
      skip();
    }
    FLASHBOUND_HD constexpr Block operator*() const { return range_->block(index_); }
    FLASHBOUND_HD constexpr Iterator& operator++() {
      ++index_;
      skip();
      return *this;
    }
    FLASHBOUND_HD friend constexpr bool operator==(const Iterator& a, const Iterator& b) {
      return a.index_ == b.index_;
    }
    FLASHBOUND_HD friend constexpr bool operator!=(const Iterator& a, const Iterator& b) {
      return a.index_ != b.index_;
    }

   private:
    FLASHBOUND_HD constexpr void skip() {
      while (index_ < range_->run_.end && !range_->contains(index_)) ++index_;
    }
    const BlockRange* range_;
    Index index_;
  };

  FLASHBOUND_HD constexpr Iterator begin() const { return {this, run_.begin}; }
  FLASHBOUND_HD constexpr Iterator end() const {
    return {this, run_.end > run_.begin ? run_.end : run_.begin};
  }
  FLASHBOUND_HD constexpr bool empty() const { return begin() == end(); }

  // True when every block of run() is in the range, so that it can be counted without a walk.
  FLASHBOUND_HD constexpr bool contiguous() const { return !schedule_.mask.blocks.present(); }
  FLASHBOUND_HD constexpr Interval run() const { return run_; }
  FLASHBOUND_HD constexpr Partition partition() const {
    return along_ == Along::keys ? schedule_.kv_partition() : schedule_.q_partition();
  }
  FLASHBOUND_HD constexpr Index count() const {
    if (contiguous()) return run_.size();
    Index blocks = 0;
    for (Iterator it = begin(); it != end(); ++it) ++blocks;
    return blocks;
  }

 private:
  FLASHBOUND_HD constexpr Coverage coverage(Interval span) const {
    return along_ == Along::keys ? schedule_.coverage(across_, span)
                                 : schedule_.coverage(span, across_);
  }
  FLASHBOUND_HD constexpr Block block(Index index) const {
    const Interval span = partition().interval(index);
    return {index, span, keep_ == Keep::invisible ? Coverage::empty : coverage(span)};
  }
  FLASHBOUND_HD constexpr bool contains(Index index) const {
    if (contiguous()) return true;
    if (keep_ == Keep::invisible) return schedule_.kv_blocks(index).empty();
    if (coverage(partition().interval(index)) == Coverage::empty) return false;
    if (keep_ == Keep::visible) return true;
    const Index here = across_.begin / schedule_.tile.block_kv;
    const bool starts = (*schedule_.kv_blocks(index).begin()).index == here;
    return starts == (keep_ == Keep::starting);
  }

  Schedule schedule_;
  Along along_;
  Interval across_;  // rows of the q block (Along::keys) or keys of the kv block (Along::queries)
  Interval run_;     // indices that the band admits
  Keep keep_;
};

FLASHBOUND_HD constexpr Coverage Schedule::coverage(Interval rows, Interval keys) const {
  const Band window = band();
  if (!mask.blocks.present() || rows.empty() || keys.empty()) return window.coverage(rows, keys);
  const BlockMaskView& cells = mask.blocks;
  bool any = false;
  bool all = true;
  for (Index r = rows.begin / cells.block_q; r * cells.block_q < rows.end; ++r) {
    const Index r0 = r * cells.block_q;
    const Interval cell_rows{r0 > rows.begin ? r0 : rows.begin,
                             r0 + cells.block_q < rows.end ? r0 + cells.block_q : rows.end};
    for (Index c = keys.begin / cells.block_kv; c * cells.block_kv < keys.end; ++c) {
      const Index c0 = c * cells.block_kv;
      const Interval cell_keys{c0 > keys.begin ? c0 : keys.begin,
                               c0 + cells.block_kv < keys.end ? c0 + cells.block_kv : keys.end};
      const Coverage cell =
          cells.cell(r, c) ? window.coverage(cell_rows, cell_keys) : Coverage::empty;
      any = any || cell != Coverage::empty;
      all = all && cell == Coverage::full;
    }
  }
  return all ? Coverage::full : any ? Coverage::partial : Coverage::empty;
}

FLASHBOUND_HD constexpr BlockRange Schedule::kv_blocks(Index i) const {
  const Interval rows = q_rows(i);
  return {*this, BlockRange::Along::keys, rows, kv_partition().blocks(band().keys(rows)),
          BlockRange::Keep::visible};
}

FLASHBOUND_HD constexpr BlockRange Schedule::kv_blocks(Index i, Index split) const {
  const Interval rows = q_rows(i);
  const Interval visible = kv_partition().blocks(band().keys(rows));
  const Index per_split = Partition{kv_block_count(), tile.num_splits}.count();
  const Index begin = split * per_split;
  const Index end = begin + per_split;
  const Interval run{begin > visible.begin ? begin : visible.begin,
                     end < visible.end ? end : visible.end};
  return {*this, BlockRange::Along::keys, rows, run.empty() ? Interval{} : run,
          BlockRange::Keep::visible};
}

FLASHBOUND_HD constexpr BlockRange Schedule::q_blocks(Index j) const {
  const Interval keys = kv_rows(j);
  return {*this, BlockRange::Along::queries, keys, q_partition().blocks(band().rows(keys)),
          BlockRange::Keep::visible};
}

FLASHBOUND_HD constexpr BlockRange Schedule::q_blocks_starting_at(Index j) const {
  const Interval keys = kv_rows(j);
  Interval run = q_partition().blocks(band().rows(keys));
  if (!mask.blocks.present()) {
    // A band's first block never decreases with i, so that the blocks starting at j are a suffix.
    Index low = run.begin;
    Index high = run.end;
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (kv_blocks(middle).run().begin < j) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    run.begin = low;
  }
  return {*this, BlockRange::Along::queries, keys, run, BlockRange::Keep::starting};
}

FLASHBOUND_HD constexpr BlockRange Schedule::q_blocks_continuing_at(Index j) const {
  const Interval keys = kv_rows(j);
  Interval run = q_partition().blocks(band().rows(keys));
  if (!mask.blocks.present()) run.end = q_blocks_starting_at(j).run().begin;
  return {*this, BlockRange::Along::queries, keys, run, BlockRange::Keep::continuing};
}

FLASHBOUND_HD constexpr BlockRange Schedule::q_blocks_without_keys() const {
  // With a band only leading queries can see nothing: those whose window ends before key 0.
  Index end = q_block_count();
  if (!mask.blocks.present() && shape.seqlen_kv > 0) {
    const Interval seeing = band().rows({0, shape.seqlen_kv});
    end = seeing.begin / tile.block_q;
  }
  return {*this, BlockRange::Along::queries, {}, {0, end}, BlockRange::Keep::invisible};
}

}  // namespace flashbound
