#include "sim/tile_search.hpp"

#include "core/closed_form.hpp"
#include "sim/tile_candidates.hpp"

#include <algorithm>
#include <cstddef>

namespace flashbound {
namespace {

// Whether a comes before b among points: less sram, then fewer bytes; of equals the larger tile.
bool before(const StairPoint& a, const StairPoint& b) {
  if (a.sram != b.sram) return a.sram < b.sram;
  if (a.moved() != b.moved()) return a.moved() < b.moved();
  if (a.tile.block_q != b.tile.block_q) return a.tile.block_q > b.tile.block_q;
  return a.tile.block_kv > b.tile.block_kv;
}

// Keeps the points that no other with as little sram beats. Sorting is stable, so that of equal
// points of several algorithms the first stays.
void keep_best(std::vector<StairPoint>& points) {
  if (!std::is_sorted(points.begin(), points.end(), before)) {  // larger blocks mostly need more
    std::stable_sort(points.begin(), points.end(), before);
  }
  std::size_t kept = 0;
  for (const StairPoint& point : points) {
    if (kept == 0 || point.moved() < points[kept - 1].moved()) points[kept++] = point;
  }
  points.resize(kept);
}

Bytes kernel_bytes(const Program& program, const Problem& problem, const Tile& tile,
                   const TileSearch& search) {
  Bytes most;
  const Index distinct = problem.cu_seqlens_q.empty() ? 1 : sequence_count(problem);
  for (Index s = 0; s < distinct; ++s) {
    const Schedule schedule = schedule_for(problem, tile, sequence(problem, s));
    most = std::max(most, kernel_footprint(program, schedule, search.dtype, search.stages));
  }
  return most;
}

// All tiles of one block_q.
std::vector<StairPoint> points_of(const Algorithm& algorithm, const Program& program,
                                  const Problem& problem, const TileSearch& search, Index block_q,
                                  const std::vector<Index>& sizes_kv) {
  std::vector<StairPoint> points;
  points.reserve(sizes_kv.size());
  for (const Index block_kv : sizes_kv) {
    const Tile tile{.block_q = block_q, .block_kv = block_kv, .panel = 1, .num_splits = 1};
    const ClosedTraffic traffic = closed_traffic(algorithm.name, problem, tile, search.dtype);
    const Bytes sram = search.footprint == FootprintKind::uniform
                           ? bytes_of(traffic.sram_peak, byte_size(search.dtype))
                           : kernel_bytes(program, problem, tile, search);
    points.push_back({algorithm.name, tile, sram, traffic.read, traffic.written});
  }
  keep_best(points);
  return points;
}

}  // namespace

const StairPoint* Staircase::at(Bytes sram) const {
  const auto above =
      std::upper_bound(points.begin(), points.end(), sram,
                       [](Bytes value, const StairPoint& point) { return value < point.sram; });
  return above == points.begin() ? nullptr : &*(above - 1);
}

Staircase staircase(const Algorithm& algorithm, const Problem& problem, const TileSearch& search,
                    const ParallelFor& parallel_for) {
  const TileCandidates candidates = tile_candidates(algorithm.name, problem);
  const Program program = algorithm.program();
  const auto rows = static_cast<Index>(candidates.block_q.size());
  std::vector<std::vector<StairPoint>> by_block_q(candidates.block_q.size());
  parallel_for(rows, [&](Index row) {
    const auto at = static_cast<std::size_t>(row);
    by_block_q[at] =
        points_of(algorithm, program, problem, search, candidates.block_q[at], candidates.block_kv);
  });
  Staircase result{.all_tiles = candidates.all,
                   .tried = rows * static_cast<Index>(candidates.block_kv.size())};
  for (const std::vector<StairPoint>& points : by_block_q) {
    result.points.insert(result.points.end(), points.begin(), points.end());
  }
  keep_best(result.points);
  return result;
}

Staircase envelope(const std::vector<Staircase>& staircases) {
  Staircase merged;
  for (const Staircase& one : staircases) {
    merged.points.insert(merged.points.end(), one.points.begin(), one.points.end());
    merged.all_tiles = merged.all_tiles && one.all_tiles;
    merged.tried += one.tried;
  }
  // Tiles do not decide between algorithms: equal points are left in the order of the list.
  std::stable_sort(merged.points.begin(), merged.points.end(),
                   [](const StairPoint& a, const StairPoint& b) {
                     return a.sram != b.sram ? a.sram < b.sram : a.moved() < b.moved();
                   });
  std::size_t kept = 0;
  for (const StairPoint& point : merged.points) {
    if (kept == 0 || point.moved() < merged.points[kept - 1].moved()) {
      merged.points[kept++] = point;
    }
  }
  merged.points.resize(kept);
  return merged;
}

}  // namespace flashbound
