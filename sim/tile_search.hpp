// The least that an algorithm moves for every size of fast memory, over all its tiles (a
// scratchpad: the program decides what stays).
#pragma once

#include "core/footprint.hpp"
#include "core/number_format.hpp"
#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/programs.hpp"
#include "core/units.hpp"

#include <string_view>
#include <vector>

namespace flashbound {

// One tile worth having: what it needs and moves, over all heads and sequences.
struct StairPoint {
  std::string_view algorithm{};
  Tile tile{};
  Bytes sram{};
  Bytes read{};
  Bytes written{};

  Bytes moved() const { return read + written; }
  friend bool operator==(const StairPoint&, const StairPoint&) = default;
};

// Points of ascending sram and strictly descending bytes moved. From a point's sram to the next
// one's its tile moves least. Where tiles that were tried tie in bytes, the one of the least sram
// is kept, then the one with the larger block_q, then the larger block_kv.
struct Staircase {
  std::vector<StairPoint> points{};
  bool all_tiles = true;  // no tile beats it; else no tile among those tried
  Index tried = 0;        // tiles evaluated, each of which is legal: every point is attained

  // The best point within `sram`; nullptr where nothing fits.
  const StairPoint* at(Bytes sram) const;
};

struct TileSearch {
  NumberFormat dtype = NumberFormat::fp16;
  FootprintKind footprint = FootprintKind::uniform;
  Index stages = 1;  // of the kernel footprint
};

// Sizes that matter are those of the tile's parameters that a closed form depends on
// (tile_candidates.hpp says which and why the others lose). `problem` is valid.
Staircase staircase(const Algorithm& algorithm, const Problem& problem, const TileSearch& search,
                    const ParallelFor& parallel_for = serial);

// The least over several algorithms; ties go to the one that comes first.
Staircase envelope(const std::vector<Staircase>& staircases);

}  // namespace flashbound
