// What a call of curve asks for.
#pragma once

#include "experiments/stair_rows.hpp"
#include "sim/cache_level.hpp"
#include "sim/layout.hpp"

#include <optional>
#include <string>
#include <vector>

namespace flashbound {

enum class TraceUnits { automatic, tiles, lines };

struct CurveRequest {
  StairRequest stairs;  // problem, dtype, footprint and the one algorithm
  Tile tile{};
  bool scratchpad = false;              // the least over tiles, beside or instead of caches
  std::vector<Replacement> policies{};  // of caches
  std::vector<Bytes> capacities{};      // of --cache, ascending; empty: chosen from the curve
  Index points = 64;                    // 0: all
  Index ways = 0;                       // 0: fully associative
  Index line_bytes = 64;
  LayoutKind layout = LayoutKind::contiguous;
  TraceUnits units = TraceUnits::automatic;
  std::vector<std::string> leave_out{};  // tensors that are not traced
  // Whether the lower bound is about what is traced: it counts no row statistics, so that those may
  // be left out.
  bool bounded = true;

  // Whether one pass gives all capacities.
  bool by_distances(Replacement policy) const {
    return ways == 0 && (policy == Replacement::lru || policy == Replacement::opt);
  }
};

// Throws ConfigError.
CurveRequest curve_request(const Options& options);

std::string_view name(LayoutKind layout);

}  // namespace flashbound
