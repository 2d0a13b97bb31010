// Which keys a query sees. Alignment is bottom-right: the last query faces the last key.
#pragma once

#include "core/host_device.hpp"
#include "core/int128.hpp"

#include <cstdint>

namespace flashbound {

inline constexpr Index kUnbounded = -1;  // a window side without limit

// What a rectangle of query-key pairs holds. A ragged last block is a separate fact.
enum class Coverage { empty, partial, full };

// Rows, keys or columns [begin, end).
struct Interval {
  Index begin = 0;
  Index end = 0;
  FLASHBOUND_HD constexpr Index size() const { return end > begin ? end - begin : 0; }
  FLASHBOUND_HD constexpr bool empty() const { return end <= begin; }
  friend constexpr bool operator==(const Interval&, const Interval&) = default;
};

// A block-sparse mask: cell (row / block_q, key / block_kv) nonzero = visible. Non-owning and
// device-safe; `cells` has rows x cols bytes, row-major. No cells = every pair is allowed.
struct BlockMaskView {
  const std::uint8_t* cells = nullptr;
  Index cols = 0;
  Index block_q = 1;   // queries in a cell
  Index block_kv = 1;  // keys in a cell

  FLASHBOUND_HD constexpr bool present() const { return cells != nullptr; }
  FLASHBOUND_HD constexpr bool cell(Index row, Index col) const {
    return cells[row * cols + col] != 0;
  }
  FLASHBOUND_HD constexpr bool allows(Index query, Index key) const {
    return !present() || cell(query / block_q, key / block_kv);
  }
};

// Query i sees key j iff i + d - window_left <= j <= i + d + window_right with
// d = seqlen_kv - seqlen_q, and the block mask allows it. Causal is window_right = 0.
struct Mask {
  Index window_left = kUnbounded;
  Index window_right = kUnbounded;
  BlockMaskView blocks{};
};

// The band part of a mask over one sequence: the keys that a query's window admits, and back.
struct Band {
  Index seqlen_q = 0;
  Index seqlen_kv = 0;
  Index window_left = kUnbounded;
  Index window_right = kUnbounded;

  // Keys within the window of query `row`, possibly none.
  FLASHBOUND_HD constexpr Interval keys(Index row) const {
    const Index diagonal = row + seqlen_kv - seqlen_q;
    const Index begin = window_left < 0 ? 0 : clamp(diagonal - window_left, seqlen_kv);
    const Index end = window_right < 0 ? seqlen_kv : clamp(diagonal + window_right + 1, seqlen_kv);
    return {begin, end > begin ? end : begin};
  }

  // Keys that some query of `rows` sees. Neighbouring windows overlap or touch, and the last
  // query faces the last key, so that the union has no holes.
  FLASHBOUND_HD constexpr Interval keys(Interval rows) const {
    if (rows.empty()) return {};
    return {keys(rows.begin).begin, keys(rows.end - 1).end};
  }

  // Queries that see some key of `keys`; likewise without holes.
  FLASHBOUND_HD constexpr Interval rows(Interval keys) const {
    if (keys.empty()) return {};
    const Index offset = seqlen_kv - seqlen_q;
    const Index begin = window_right < 0 ? 0 : clamp(keys.begin - offset - window_right, seqlen_q);
    const Index end = window_left < 0 ? seqlen_q : clamp(keys.end - offset + window_left, seqlen_q);
    return {begin, end > begin ? end : begin};
  }

  FLASHBOUND_HD constexpr Coverage coverage(Interval rows, Interval columns) const {
    const Interval seen = keys(rows);
    if (columns.empty() || seen.empty() || columns.begin >= seen.end || columns.end <= seen.begin)
      return Coverage::empty;
    const bool every_row_sees_all =
        columns.begin >= keys(rows.end - 1).begin && columns.end <= keys(rows.begin).end;
    return every_row_sees_all ? Coverage::full : Coverage::partial;
  }

 private:
  FLASHBOUND_HD static constexpr Index clamp(Index value, Index high) {
    return value < 0 ? 0 : value > high ? high : value;
  }
};

}  // namespace flashbound
