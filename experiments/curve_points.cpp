#include "experiments/curve_points.hpp"

#include "experiments/command.hpp"
#include "experiments/interrupt.hpp"
#include "sim/memory_levels.hpp"
#include "sim/stack_curve.hpp"

#include <algorithm>
#include <cmath>

namespace flashbound {
namespace {

CurvePoint point_of(const LevelResult& level, Bytes capacity) {
  CurvePoint point{.cache = capacity};
  for (const LevelTraffic& t : level.tensors) {
    point.tensors.push_back({t.tensor, t.read_hits, t.read_misses, t.write_hits, t.write_misses,
                             Bytes(Int128{t.reads_on()} * level.line_bytes),
                             Bytes(Int128{t.writes_on()} * level.line_bytes)});
  }
  return point;
}

}  // namespace

CurvePoint point_at(const CapacityCurve& curve, Index lines) {
  const Index line = curve.line_bytes;
  CurvePoint point{.cache = Bytes(checked_mul(lines, line))};
  for (const CacheTraffic& t : traffic_at(curve, lines)) {
    point.tensors.push_back({t.tensor, t.read_hits, t.read_misses, t.write_hits, t.write_misses,
                             Bytes(checked_mul(t.read_misses, line)),
                             Bytes(checked_mul(t.write_backs, line))});
  }
  return point;
}

std::vector<Index> chosen_lines(const CapacityCurve& curve, Index points) {
  std::vector<Index> lines{0};
  const std::vector<Index> steps = breakpoints(curve);
  if (points == 0 || static_cast<Index>(steps.size()) < points) {
    lines.insert(lines.end(), steps.begin(), steps.end());
  } else {
    const double last = std::log(static_cast<double>(steps.back()));
    for (Index p = 0; p + 1 < points; ++p) {
      const double at =
          last * static_cast<double>(p) / static_cast<double>(std::max<Index>(points - 2, 1));
      lines.push_back(static_cast<Index>(std::llround(std::exp(at))));
    }
    lines.push_back(steps.back());
  }
  if (!steps.empty() && steps.back() > 1) lines.push_back(steps.back() - 1);  // the foot of a cliff
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

std::vector<Index> plotted_lines(const CapacityCurve& curve) {
  constexpr Index kSamples = 300;
  std::vector<Index> lines = chosen_lines(curve, kSamples);
  const Index last = lines.back();
  for (Index s = 0; s < kSamples; ++s) lines.push_back(last * s / kSamples);
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

CapacityCurve curve_of(Replacement policy, Traces& traces) {
  return policy == Replacement::lru ? stack_curve(traces.for_lru(), StackPolicy::lru)
                                    : stack_curve(traces.lines(), StackPolicy::opt);
}

std::vector<CurvePoint> points_by_distances(const CurveRequest& request,
                                            const CapacityCurve& curve) {
  std::vector<CurvePoint> points;
  if (request.capacities.empty()) {
    for (const Index lines : chosen_lines(curve, request.points)) {
      points.push_back(point_at(curve, lines));
    }
  }
  for (const Bytes capacity : request.capacities) {
    points.push_back(point_at(curve, static_cast<Index>(capacity.value() / request.line_bytes)));
  }
  return points;
}

std::vector<CurvePoint> points_by_simulation(const CurveRequest& request, Replacement policy,
                                             Traces& traces) {
  std::vector<CurvePoint> points;
  for (const Bytes capacity : request.capacities) {
    if (interrupted) throw Interrupted();
    const CacheLevel level{.name = "cache",
                           .capacity = capacity,
                           .line_bytes = request.line_bytes,
                           .ways = request.ways,
                           .policy = policy};
    points.push_back(point_of(
        simulate_levels(std::span<const CacheLevel>(&level, 1), traces.lines()).front(), capacity));
  }
  return points;
}

}  // namespace flashbound
