// A program's accesses as a trace of lines, or of whole tiles, for the engines of sim/.
//
// The order is that of sim/trace.hpp: sequence by sequence, head by head, tiles in row-major order.
#pragma once

#include "sim/access_trace.hpp"
#include "sim/layout.hpp"

#include <optional>
#include <string>
#include <vector>

namespace flashbound {

struct OneHead {
  Index sequence = 0;
  Index head = 0;
};

struct TraceOptions {
  std::vector<std::string> without{};  // tensors whose accesses are left out
  std::optional<OneHead> only{};       // else the whole problem
  bool fast_forward = true;            // of tile_trace: steady loops as repeats, exact for LRU only
};

// More accesses than this are rejected: 4 GiB of them.
inline constexpr Index kTraceAccessesMax = Index{1} << 30;

// Unit n is the n-th line of the address space, counted without the tensors left out. `layout` is
// that of this program, problem and tile. Throws ConfigError before it allocates for more than
// kTraceAccessesMax accesses or kTraceUnitsMax lines, and for a tensor or head that is not there.
AccessTrace line_trace(const Program& program, const Problem& problem, const Tile& tile,
                       const Layout& layout, const TraceOptions& options = {});

// The trace of tiles, or why tiles may not stand for their lines (sim/tile_grid.hpp).
struct TileTrace {
  std::optional<AccessTrace> trace{};
  std::string why_not{};
};

// Unit n is tile n of the grid. LRU distances and write-backs are those of line_trace exactly.
// With fast_forward an unmasked head's last loop is cut to two iterations and the ragged one, the
// second of which repeats (sim/steady_loop.hpp): an engine counts each of its accesses, its first
// touches and first writes included, `times` times. Throws like line_trace, counting tiles instead
// of lines.
TileTrace tile_trace(const Program& program, const Problem& problem, const Tile& tile,
                     const Layout& layout, const TraceOptions& options = {});

}  // namespace flashbound
