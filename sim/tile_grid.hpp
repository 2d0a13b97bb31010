// Whole tiles as units of a trace: when that is exact, and how they are numbered.
//
// A tile of L lines may stand for its lines when every access to one of them belongs to an access
// to all of them, each once, in the same order. Then each line has the LRU distance D + L, with D
// the lines outside the tile touched in between: of the L - 1 others, those before it come again
// now and those after it came last time. That holds where
//   - all regions of a tensor come from one cut of its rows and one of its columns, so that any two
//     are equal or share no element, and
//   - each segment of a region begins at a line, so that no line belongs to two segments: segments
//     share no byte, and one ends before the next begins.
// Rows narrower than a line side by side, panels that cut a line, and heads or sequences that begin
// inside a line break the second; a matrix stored in blocks and loaded in panels breaks the first.
#pragma once

#include "sim/layout.hpp"
#include "sim/moves.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace flashbound {

// The tiles of one matrix: row_blocks x col_blocks of row_block x col_block elements, the last
// ones perhaps ragged. A matrix of no elements has none.
struct MatrixGrid {
  Index row_block = 0;
  Index col_block = 0;
  Index row_blocks = 0;
  Index col_blocks = 0;
  Index first = 0;  // tiles before those of its head 0 and split 0 in its tensor

  Index tiles() const { return row_blocks * col_blocks; }
};

// The tiles of a tensor that the trace holds, numbered from `first` on: by split, sequence, head,
// block of rows and block of columns.
struct TensorGrid {
  Index first = 0;
  Index tiles = 0;  // 0: not in the trace
  Index split_stride = 0;
  Index sequence_stride = 0;            // of sequences that are all alike
  std::vector<MatrixGrid> sequences{};  // as in TensorLayout

  const MatrixGrid& matrix(Index sequence) const {
    return sequences[sequences.size() == 1 ? 0 : static_cast<std::size_t>(sequence)];
  }
  // The number of the tile in row block r and column block c of a matrix; `head` counts matrices.
  Index tile(Index split, Index sequence, Index head, Index r, Index c) const {
    const MatrixGrid& m = matrix(sequence);
    return first + split * split_stride + sequence * sequence_stride + m.first + head * m.tiles() +
           r * m.col_blocks + c;
  }
};

struct TileGrid {
  std::vector<TensorGrid> tensors{};  // in the program's order
  Index tiles = 0;
  std::string why_not{};  // where tiles may not stand for their lines; then nothing else is set
};

// `moves` are those of `program` that the trace holds. Throws ConfigError where there are more
// tiles than an access can name.
TileGrid tile_grid(const Program& program, const std::vector<MoveNode>& moves,
                   const Problem& problem, const Tile& tile, const Layout& layout);

// Lines of each tile, in the grid's order. Throws ConfigError for a tile of 2^32 lines or more.
std::vector<std::uint32_t> tile_lines(const TileGrid& grid, const Problem& problem,
                                      const Layout& layout);

}  // namespace flashbound
