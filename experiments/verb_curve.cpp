#include "core/errors.hpp"
#include "core/lower_bound.hpp"
#include "experiments/command.hpp"
#include "experiments/curve_request.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/plot_file.hpp"
#include "experiments/plot_svg.hpp"
#include "experiments/progress.hpp"
#include "sim/memory_levels.hpp"
#include "sim/program_trace.hpp"
#include "sim/stack_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace flashbound {
namespace {

double real(Bytes bytes) { return static_cast<double>(bytes.value()); }

// What one run of curve has at hand: the program and, made when first wanted, its traces.
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

CurvePoint point_of(const LevelResult& level, Bytes capacity) {
  CurvePoint point{.cache = capacity};
  for (const LevelTraffic& t : level.tensors) {
    point.tensors.push_back({t.tensor, t.read_hits, t.read_misses, t.write_hits, t.write_misses,
                             Bytes(Int128{t.reads_on()} * level.line_bytes),
                             Bytes(Int128{t.writes_on()} * level.line_bytes)});
  }
  return point;
}

// No cache, every step or some spread evenly in their logarithm, and around the steepest fall.
std::vector<Index> chosen_lines(const CapacityCurve& curve, Index points) {
  std::vector<Index> lines{0};
  const std::vector<Index> steps = breakpoints(curve);
  if (points == 0 || static_cast<Index>(steps.size()) < points) {
    lines.insert(lines.end(), steps.begin(), steps.end());
  } else {
    const double last = std::log(static_cast<double>(steps.back()));
    for (Index p = 0; p + 1 < points; ++p) {
      const double at = last * static_cast<double>(p) / static_cast<double>(points - 2);
      lines.push_back(static_cast<Index>(std::llround(std::exp(at))));
    }
    lines.push_back(steps.back());
  }
  if (!steps.empty() && steps.back() > 1) lines.push_back(steps.back() - 1);  // the foot of a cliff
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

// Fine enough on either kind of axis that nothing is drawn that is not there.
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

std::string tensors_json(const CurvePoint& point) {
  std::string text = "\"tensors\": {";
  for (const TensorBytes& t : point.tensors) {
    text += fmt::format(
        "{}{}: {{\"read_bytes\": {}, \"write_bytes\": {}, \"read_hits\": {}, \"read_misses\": {}, "
        "\"write_hits\": {}, \"write_misses\": {}}}",
        text.back() == '{' ? "" : ", ", json_string(t.tensor), to_string(t.read),
        to_string(t.written), to_decimal(t.read_hits), to_decimal(t.read_misses),
        to_decimal(t.write_hits), to_decimal(t.write_misses));
  }
  return text + "}";
}

Document curve_document() {
  Document document = stair_document();
  std::vector<std::string_view> names{"line_bytes", "cache_bytes", "ways", "layout"};
  for (const Column* column : document.columns) names.push_back(column->name);
  document.columns = columns_named(names);
  document.shown = {"policy",          "cache_bytes", "sram_bytes",           "hbm_read_bytes",
                    "hbm_write_bytes", "hbm_bytes",   "ratio_to_lower_bound", "status"};
  return document;
}

Row cache_row(const Document& document, const CurveRequest& request, Replacement policy,
              const CurvePoint& point, Bytes peak) {
  const StairPoint as_stair{.algorithm = request.stairs.algorithms.front()->name,
                            .tile = request.tile,
                            .sram = peak,
                            .read = point.read(),
                            .written = point.written()};
  Row row = stair_row(document, request.stairs, as_stair, point.cache + peak);
  set(document, row, "policy", std::string(name(policy)));
  set(document, row, "line_bytes", Int128{request.line_bytes});
  set(document, row, "cache_bytes", point.cache.value());
  if (request.ways > 0) set(document, row, "ways", Int128{request.ways});
  set(document, row, "layout", std::string(name(request.layout)));
  set(document, row, "method",
      std::string(request.by_distances(policy) ? "stack-distances" : "cache-simulation"));
  row.extra_json = tensors_json(point);
  return row;
}

PlotSeries bound_series(const CurveRequest& request, const std::vector<PlotSeries>& others) {
  std::vector<double> sizes;
  for (const PlotSeries& series : others) {
    for (const auto& point : series.points) sizes.push_back(point.first);
  }
  std::sort(sizes.begin(), sizes.end());
  PlotSeries bound{.name = "lower bound", .dashed = true};
  constexpr int kSamples = 100;
  for (int s = 0; !sizes.empty() && s <= kSamples; ++s) {
    const double at =
        std::log(sizes.front()) + (std::log(sizes.back()) - std::log(sizes.front())) * s / kSamples;
    const Bytes sram(static_cast<Int128>(std::exp(at)));
    bound.points.emplace_back(std::exp(at),
                              real(lower_bound(request.stairs.problem, request.stairs.search.dtype,
                                               request.stairs.pass, sram)
                                       .bytes()));
  }
  return bound;
}

struct Curves {
  const CurveRequest& request;
  Outcome& outcome;
  std::vector<PlotSeries> series{};

  void add_scratchpad(const Options& options) {
    const Staircase stairs = search_all(options, request.stairs, outcome.threads).front();
    PlotSeries line{.name = "scratchpad (best tile)", .stairs = true};
    for (const StairPoint& point : thinned(stairs.points, request.points)) {
      outcome.document.rows.push_back(
          stair_row(outcome.document, request.stairs, point, point.sram));
    }
    for (const StairPoint& point : thinned(stairs.points, 400)) {
      line.points.emplace_back(real(point.sram), real(point.moved()));
    }
    series.push_back(std::move(line));
  }

  void add_cache(Replacement policy, Traces& traces, Bytes peak) {
    PlotSeries line{.name = std::string(name(policy)) + " cache beside the tiles"};
    const auto draw = [&](const CurvePoint& point) {
      line.points.emplace_back(real(point.cache + peak), real(point.read() + point.written()));
    };
    const auto tell = [&](const CurvePoint& point) {
      outcome.document.rows.push_back(cache_row(outcome.document, request, policy, point, peak));
    };
    if (request.by_distances(policy)) {
      const CapacityCurve curve = curve_of(policy, traces);
      for (const CurvePoint& point : points_by_distances(request, curve)) tell(point);
      for (const Index lines : plotted_lines(curve)) draw(point_at(curve, lines));
      line.stairs = true;
    } else {
      for (const CurvePoint& point : points_by_simulation(request, policy, traces)) {
        tell(point);
        draw(point);  // joined by straight lines: nothing is known in between
      }
    }
    series.push_back(std::move(line));
  }
};

}  // namespace

Outcome run_curve(const Options& options) {
  const CurveRequest request = curve_request(options);
  Outcome outcome;
  outcome.threads = threads_of(options);
  outcome.document = curve_document();
  Curves curves{request, outcome};
  try {
    if (request.scratchpad) curves.add_scratchpad(options);
    if (!request.policies.empty()) {
      Progress progress("policies", static_cast<Index>(request.policies.size()),
                        options.flag("quiet") ? ProgressWish::quiet : ProgressWish::shown);
      Traces traces(request);
      const Bytes peak =
          required_bytes(footprint(traces.program(), request.stairs.problem, request.tile,
                                   request.stairs.search.dtype, request.stairs.search.footprint,
                                   request.stairs.search.stages),
                         request.stairs.search.footprint);
      for (const Replacement policy : request.policies) {
        curves.add_cache(policy, traces, peak);
        progress.step();
        if (interrupted) throw Interrupted();
      }
    }
  } catch (const Interrupted&) {
    outcome.exit_code = kInterrupted;
  }
  Plot plot{.title = fmt::format("{}: HBM bytes by size of fast memory",
                                 request.stairs.algorithms.front()->name),
            .x = {.label = "fast memory: tiles and cache (bytes)", .log = request.scratchpad},
            .y = {.label = "HBM bytes read and written", .log = request.scratchpad},
            .series = curves.series};
  plot.series.push_back(bound_series(request, curves.series));
  outcome.document.figure_svg = plot_svg(plot);
  add_plot_file(options, outcome);
  return outcome;
}

}  // namespace flashbound
