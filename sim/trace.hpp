// The trace machine: which bytes a program's loads and stores touch, in order.
//
// Assumed: one head runs after another, all its kernels from first to last before the next head
// begins; sequences one after another, and the query heads of each in order. A tile moves in
// row-major order, whatever it is for.
#pragma once

#include "sim/layout.hpp"

#include <functional>

namespace flashbound {

enum class Granularity {
  element,  // each element of a tile's region
  line,     // each line that a segment of the region (sim/layout.hpp) meets, once a segment
  tile,     // the region as a whole
};

// `units` accesses to consecutive units of memory, in order of their addresses.
struct AccessRun {
  Index address = 0;     // of the first byte; of a line, a multiple of the line
  Index units = 0;       // at least 1
  Index unit_bytes = 0;  // of an element, of a line, or of all elements of a region
  int tensor = 0;        // index in the program's tensors
  bool write = false;
  friend bool operator==(const AccessRun&, const AccessRun&) = default;
};

using RunSink = std::function<void(const AccessRun&)>;

// Calls sink(run) for each run of one query head of one sequence. A region of no elements makes no
// run. `layout` is that of this program, problem and tile.
void trace_head(const Program& program, const Problem& problem, const Tile& tile,
                const Layout& layout, Index sequence, Index head, Granularity granularity,
                const RunSink& sink);

// The same for the whole problem.
void trace(const Program& program, const Problem& problem, const Tile& tile, const Layout& layout,
           Granularity granularity, const RunSink& sink);

}  // namespace flashbound
