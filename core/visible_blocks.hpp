// Sums and maxima over the tiles that a mask makes visible, in closed form for bands. Derived from
// the mask's definition alone, never from Schedule's ranges, so that each can check the other.
#pragma once

#include "core/schedule.hpp"
#include "core/units.hpp"

#include <array>

namespace flashbound {

// How far a window side reaches: one without limit gets to every key from every query.
constexpr Index reach(Index window, const Shape& shape) {
  return window < 0 ? shape.seqlen_q + shape.seqlen_kv : window;
}

// All query blocks of one height: the whole ones, or the ragged last one.
struct QBlockClass {
  Index rows = 0;           // queries in a block; 0 when there is no such block
  Index kv_blocks_max = 0;  // blocks of keys that one of them sees, at most
  Index kv_block_rows = 0;  // keys in the largest block that one of them sees, 0 if none
  bool some_see_nothing = false;
  friend bool operator==(const QBlockClass&, const QBlockClass&) = default;
};

// With n_i the number of key blocks that query block i sees, r_i its queries, and c_i the keys in
// those blocks together. All in elements of one column, so that times a head_dim they are traffic.
struct VisibleBlocks {
  Elements rows_seeing{};                // sum of r_i over blocks with n_i > 0
  Elements row_visits{};                 // sum of r_i n_i: a vector of row statistics, once a visit
  Elements key_visits{};                 // sum of c_i: a column of K, once a visit
  Elements scores{};                     // sum of r_i c_i: the visited part of the score matrix
  std::array<QBlockClass, 2> classes{};  // whole blocks, ragged block
  friend bool operator==(const VisibleBlocks&, const VisibleBlocks&) = default;
};

// A band takes O(log) time; a block mask one look at each of its cells and each visible run of
// them in every block of queries. Only the data of `schedule` is used: shape, mask, tile.
VisibleBlocks visible_blocks(const Schedule& schedule);

}  // namespace flashbound
