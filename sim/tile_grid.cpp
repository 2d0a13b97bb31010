#include "sim/tile_grid.hpp"

#include "core/errors.hpp"
#include "sim/access_trace.hpp"

#include <cstddef>
#include <limits>

namespace flashbound {
namespace {

std::string shape(const MatrixGrid& grid) {
  return std::to_string(grid.row_block) + " x " + std::to_string(grid.col_block);
}

// How each tensor's matrices of one sequence are cut; `why_not` where two moves cut one otherwise.
std::vector<MatrixGrid> cuts(const Program& program, const std::vector<Move>& moves,
                             const Schedule& schedule, std::string& why_not) {
  const MoveWalk walk{program, schedule};  // every loop at block 0, which is the largest
  std::vector<MatrixGrid> grids(program.tensors.size());
  for (const Move& move : moves) {
    const auto t = static_cast<std::size_t>(move.tensor);
    const MatrixGrid cut{.row_block = walk.interval(move.rows).size(),
                         .col_block = walk.interval(move.cols).size()};
    if (cut.row_block == 0 || cut.col_block == 0) continue;
    MatrixGrid& grid = grids[t];
    if (grid.row_block == 0) grid = cut;
    if (grid.row_block != cut.row_block || grid.col_block != cut.col_block) {
      why_not = "tensor '" + program.tensors[t].name + "' moves in tiles of " + shape(grid) +
                " and of " + shape(cut);
    }
  }
  return grids;
}

bool rows_join(const MatrixLayout& m, const MatrixGrid& grid, Index element_bytes) {
  return grid.col_blocks == 1 && m.row_stride == m.cols * element_bytes;
}

// Whether every segment of every tile begins at a line. The tensor itself does.
bool begins_at_lines(const TensorLayout& tensor, const MatrixLayout& m, const MatrixGrid& grid,
                     Index sequences_alike, Index line_bytes) {
  const auto steps_whole_lines = [&](Index steps, Index bytes) {
    return steps == 1 || bytes % line_bytes == 0;
  };
  const bool matrices = m.begin % line_bytes == 0 &&
                        steps_whole_lines(tensor.heads, m.head_stride) &&
                        steps_whole_lines(tensor.splits, tensor.split_stride) &&
                        steps_whole_lines(sequences_alike, tensor.sequence_stride);
  if (!matrices) return false;
  if (rows_join(m, grid, tensor.element_bytes)) {
    return steps_whole_lines(grid.row_blocks, grid.row_block * m.row_stride);
  }
  return steps_whole_lines(m.rows, m.row_stride) &&
         steps_whole_lines(grid.col_blocks, grid.col_block * tensor.element_bytes);
}

Index lines_of(const TensorLayout& tensor, const MatrixLayout& m, const MatrixGrid& grid, Index r,
               Index c, Index line_bytes) {
  const Index rows = Partition{m.rows, grid.row_block}.interval(r).size();
  const Index cols = Partition{m.cols, grid.col_block}.interval(c).size();
  const auto lines = [&](Index bytes) { return (bytes + line_bytes - 1) / line_bytes; };
  return rows_join(m, grid, tensor.element_bytes) ? lines(rows * m.row_stride)
                                                  : rows * lines(cols * tensor.element_bytes);
}

Int128 count_tiles(const TensorGrid& grid, const TensorLayout& tensor, Index sequences_alike) {
  Int128 one_split = 0;
  for (const MatrixGrid& m : grid.sequences) {
    one_split += checked_mul(tensor.heads, checked_mul(m.row_blocks, m.col_blocks));
  }
  return checked_mul(tensor.splits, checked_mul(sequences_alike, one_split));
}

// Numbers the tiles of one tensor, whose cuts are known, from `first` on.
void number_tiles(TensorGrid& grid, const TensorLayout& tensor, Index sequences_alike,
                  Index first) {
  Index one_of_each = 0;
  for (MatrixGrid& m : grid.sequences) {
    m.first = one_of_each;
    one_of_each += tensor.heads * m.tiles();
  }
  grid.first = first;
  grid.sequence_stride = grid.sequences.size() == 1 ? one_of_each : 0;
  grid.split_stride = sequences_alike * one_of_each;
  grid.tiles = tensor.splits * grid.split_stride;
}

}  // namespace

TileGrid tile_grid(const Program& program, const std::vector<MoveNode>& moves,
                   const Problem& problem, const Tile& tile, const Layout& layout) {
  const std::vector<Move> list = listed(moves);
  const bool packed = !problem.cu_seqlens_q.empty();
  const Index alike = packed ? 1 : problem.batch;
  TileGrid result;
  result.tensors.resize(program.tensors.size());
  for (Index s = 0; s < (packed ? sequence_count(problem) : 1); ++s) {
    const Schedule schedule = schedule_for(problem, tile, sequence(problem, s));
    std::vector<MatrixGrid> grids = cuts(program, list, schedule, result.why_not);
    if (!result.why_not.empty()) return {.why_not = result.why_not};
    for (std::size_t t = 0; t < grids.size(); ++t) {
      const TensorLayout& tensor = layout.tensors[t];
      const MatrixLayout& m = tensor.matrix(s);
      MatrixGrid& grid = grids[t];
      if (grid.row_block > 0) {
        grid.row_blocks = Partition{m.rows, grid.row_block}.count();
        grid.col_blocks = Partition{m.cols, grid.col_block}.count();
        if (!begins_at_lines(tensor, m, grid, alike, layout.line_bytes)) {
          return {.why_not = "tiles of tensor '" + tensor.name + "' share lines of " +
                             std::to_string(layout.line_bytes) + " bytes"};
        }
      }
      result.tensors[t].sequences.push_back(grid);
    }
  }
  Int128 total = 0;
  for (std::size_t t = 0; t < result.tensors.size(); ++t) {
    total = checked_add(total, count_tiles(result.tensors[t], layout.tensors[t], alike));
  }
  if (total > kTraceUnitsMax) {
    reject("trace_tiles", to_decimal(total), "at most " + std::to_string(kTraceUnitsMax));
  }
  for (std::size_t t = 0; t < result.tensors.size(); ++t) {
    number_tiles(result.tensors[t], layout.tensors[t], alike, result.tiles);
    result.tiles += result.tensors[t].tiles;
  }
  return result;
}

std::vector<std::uint32_t> tile_lines(const TileGrid& grid, const Problem& problem,
                                      const Layout& layout) {
  std::vector<std::uint32_t> lines;
  lines.reserve(static_cast<std::size_t>(grid.tiles));
  const auto append = [&](const TensorLayout& tensor, const MatrixLayout& m, const MatrixGrid& g) {
    for (Index r = 0; r < g.row_blocks; ++r) {
      for (Index c = 0; c < g.col_blocks; ++c) {
        const Index count = lines_of(tensor, m, g, r, c, layout.line_bytes);
        constexpr Index kMost = std::numeric_limits<std::uint32_t>::max();
        if (count > kMost) {
          reject("tile_lines", std::to_string(count), "at most " + std::to_string(kMost));
        }
        lines.push_back(static_cast<std::uint32_t>(count));
      }
    }
  };
  for (std::size_t t = 0; t < grid.tensors.size(); ++t) {
    const TensorLayout& tensor = layout.tensors[t];
    if (grid.tensors[t].tiles == 0) continue;
    for (Index split = 0; split < tensor.splits; ++split) {
      for (Index s = 0; s < sequence_count(problem); ++s) {
        for (Index head = 0; head < tensor.heads; ++head) {
          append(tensor, tensor.matrix(s), grid.tensors[t].matrix(s));
        }
      }
    }
  }
  return lines;
}

}  // namespace flashbound
