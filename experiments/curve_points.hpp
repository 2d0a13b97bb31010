// Points of capacity curves: what crosses in a cache of some bytes beside the tiles.
#pragma once

#include "core/errors.hpp"
#include "experiments/curve_request.hpp"
#include "sim/capacity_curve.hpp"
#include "sim/program_trace.hpp"

#include <optional>
#include <string>
#include <vector>

namespace flashbound {

// What one run of curve has at hand: the program and, made when first wanted, its traces. Views the
// request. Throws ConfigError for traces that are too large or may not be of tiles.
class Traces {
 public:
  explicit Traces(const CurveRequest& request)
      : request_(request), program_(request.stairs.algorithms.front()->program()) {
    layout_ = layout(program_, request.stairs.problem, request.tile, request.stairs.search.dtype,
                     request.layout, request.line_bytes);
  }

  const Program& program() const { return program_; }

  const AccessTrace& lines() {
    if (!lines_) {
      lines_ = line_trace(program_, request_.stairs.problem, request_.tile, layout_,
                          {.without = request_.leave_out});
    }
    return *lines_;
  }

  // Tiles for LRU where they stand for their lines, else lines.
  const AccessTrace& for_lru() {
    if (request_.units == TraceUnits::lines) return lines();
    if (!tiles_) {
      tiles_ = tile_trace(program_, request_.stairs.problem, request_.tile, layout_,
                          {.without = request_.leave_out});
    }
    if (tiles_->trace) return *tiles_->trace;
    if (request_.units == TraceUnits::tiles) {
      reject("granularity", "tile", "line: " + tiles_->why_not);
    }
    return lines();
  }

 private:
  const CurveRequest& request_;
  Program program_;
  Layout layout_;
  std::optional<AccessTrace> lines_;
  std::optional<TileTrace> tiles_;
};

struct TensorBytes {
  std::string tensor;
  Int128 read_hits, read_misses, write_hits, write_misses;
  Bytes read, written;
};

struct CurvePoint {
  Bytes cache;
  std::vector<TensorBytes> tensors{};
  Bytes read() const { return sum(&TensorBytes::read); }
  Bytes written() const { return sum(&TensorBytes::written); }

 private:
  Bytes sum(Bytes TensorBytes::*member) const {
    Bytes bytes;
    for (const TensorBytes& t : tensors) bytes += t.*member;
    return bytes;
  }
};

// Capacities in lines: none, every step or some spread evenly in their logarithm, and the foot of a
// cliff. For a chart, fine enough on either kind of axis that nothing is drawn that is not there.
std::vector<Index> chosen_lines(const CapacityCurve& curve, Index points);
std::vector<Index> plotted_lines(const CapacityCurve& curve);

CapacityCurve curve_of(Replacement policy, Traces& traces);
CurvePoint point_at(const CapacityCurve& curve, Index lines);

// At the request's capacities, or along the curve where it has none.
std::vector<CurvePoint> points_by_distances(const CurveRequest& request,
                                            const CapacityCurve& curve);
// At the request's capacities, set by set. Throws Interrupted.
std::vector<CurvePoint> points_by_simulation(const CurveRequest& request, Replacement policy,
                                             Traces& traces);

}  // namespace flashbound
