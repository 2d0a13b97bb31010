#include "tests/sim/random_trace.hpp"

#include <algorithm>
#include <cmath>

namespace flashbound {
namespace {

Index below(std::mt19937_64& random, Index limit) {
  return static_cast<Index>(random() % static_cast<std::uint64_t>(limit));
}

}  // namespace

std::vector<std::uint32_t> touched_units(std::mt19937_64& random, TraceKind kind, Index units,
                                         Index touches) {
  std::vector<std::uint32_t> touched;
  for (Index t = 0; t < touches; ++t) {
    Index unit = below(random, units);
    switch (kind) {
      case TraceKind::uniform: break;
      case TraceKind::skewed: {
        const double share = static_cast<double>(below(random, 1 << 20)) / (1 << 20);
        unit = static_cast<Index>(std::pow(static_cast<double>(units), share)) % units;
        break;
      }
      case TraceKind::cycle: unit = t % units; break;
      case TraceKind::sawtooth: {
        const Index at = t % (2 * units);
        unit = at < units ? at : 2 * units - 1 - at;
        break;
      }
      case TraceKind::phases: {
        // A window of a tenth of the units, cycled through, that moves on at times.
        const Index window = std::max<Index>(1, units / 10);
        unit = (t / (20 * window) * window + t % window) % units;
        if (below(random, 50) == 0) unit = below(random, units);
        break;
      }
    }
    touched.push_back(static_cast<std::uint32_t>(unit));
  }
  return touched;
}

AccessTrace random_trace(std::mt19937_64& random, Index units_max, Index accesses_max) {
  AccessTrace trace{.line_bytes = 64, .tensors = {"k", "o"}};
  const Index units = 1 + below(random, units_max);
  for (Index u = 0; u < units; ++u) {
    trace.unit_tensor.push_back(static_cast<std::uint8_t>(below(random, 2)));
  }
  const TraceKind kind = kTraceKinds[below(random, 5)];
  const Index writes_in_ten = below(random, 8);
  for (const std::uint32_t unit :
       touched_units(random, kind, units, 1 + below(random, accesses_max))) {
    const bool write = below(random, 10) < writes_in_ten;
    trace.accesses.push_back(write ? AccessTrace::write(unit) : AccessTrace::read(unit));
  }
  return trace;
}

AccessTrace random_tiles(std::mt19937_64& random, Index units_max, Index accesses_max) {
  AccessTrace trace = random_trace(random, units_max, accesses_max);
  for (std::size_t u = 0; u < trace.unit_tensor.size(); ++u) {
    trace.unit_lines.push_back(static_cast<std::uint32_t>(1 + below(random, 5)));
  }
  return trace;
}

}  // namespace flashbound
