#include "core/lower_bound.hpp"
#include "experiments/command.hpp"
#include "experiments/curve_points.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/plot_file.hpp"
#include "experiments/plot_svg.hpp"
#include "experiments/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace flashbound {
namespace {

double real(Bytes bytes) { return static_cast<double>(bytes.value()); }

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
  std::vector<std::string_view> names{"line_bytes", "cache_bytes", "ways", "layout", "leave_out"};
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
  if (!request.leave_out.empty()) {
    std::string left;
    for (const std::string& tensor : request.leave_out) left += (left.empty() ? "" : ",") + tensor;
    set(document, row, "leave_out", left);
  }
  if (!request.bounded) {  // the bound is about all tensors
    for (const char* column : {"lower_bound_bytes", "ratio_to_lower_bound", "compulsory_bytes",
                               "segment_bound_bytes", "product_bound_bytes"}) {
      set(document, row, column, {});
    }
  }
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
  if (request.bounded) plot.series.push_back(bound_series(request, curves.series));
  outcome.document.figure_svg = plot_svg(plot);
  add_plot_file(options, outcome);
  return outcome;
}

}  // namespace flashbound
