#include "core/lower_bound.hpp"
#include "experiments/command.hpp"
#include "experiments/envelope_text.hpp"
#include "experiments/plot_file.hpp"
#include "experiments/plot_svg.hpp"
#include "experiments/published.hpp"
#include "experiments/stair_rows.hpp"

#include <algorithm>

namespace flashbound {
namespace {

double real(Bytes bytes) { return static_cast<double>(bytes.value()); }

PlotSeries series_of(const Staircase& stairs, std::string name, Bytes low) {
  PlotSeries series{.name = std::move(name), .stairs = true};
  for (const StairPoint& point : thinned(stairs.points, 400)) {
    series.points.emplace_back(real(std::max(point.sram, low)), real(point.moved()));
  }
  return series;
}

PlotSeries bound_of(const StairRequest& request, const Staircase& merged) {
  PlotSeries series{.name = "lower bound", .dashed = true};
  for (const StairPoint& point : thinned(merged.points, 200)) {
    const LowerBound bound =
        lower_bound(request.problem, request.search.dtype, request.pass, point.sram);
    series.points.emplace_back(real(point.sram), real(bound.bytes()));
  }
  return series;
}

// The members beyond the columns.
std::string envelope_json(const StairRequest& request, Bytes sram) {
  std::string json = published_json(request.problem, request.search.dtype, sram);
  if (!json.empty()) json.erase(0, 2);  // the comma before it
  return json;
}

// Without its constant: a slope to compare with, no bound.
PlotSeries published_of(const StairRequest& request, const Staircase& merged) {
  PlotSeries series{.name = "published, no constant", .dashed = true};
  for (const StairPoint& point : thinned(merged.points, 200)) {
    const auto bytes = published_bytes(request.problem, request.search.dtype, point.sram);
    const double least = real(merged.points.back().moved());
    if (bytes && *bytes >= least) series.points.emplace_back(real(point.sram), *bytes);
  }
  return series;
}

std::string plot_of(const StairRequest& request, const std::vector<Staircase>& found,
                    const Staircase& merged) {
  Plot plot{.title = "Least HBM bytes over all tiles, by size of fast memory",
            .x = {.label = "fast memory (bytes)"},
            .y = {.label = "HBM bytes read and written"}};
  for (std::size_t a = 0; a < found.size(); ++a) {
    plot.series.push_back(series_of(found[a], std::string(request.algorithms[a]->name), Bytes(1)));
  }
  plot.series.push_back(bound_of(request, merged));
  if (request.pass == Pass::forward) plot.series.push_back(published_of(request, merged));
  if (plot.series.back().points.empty()) plot.series.pop_back();
  return plot_svg(plot);
}

}  // namespace

Outcome run_envelope(const Options& options) {
  const StairRequest request = stair_request(options);
  const Index points = points_of(options);
  Outcome outcome;
  outcome.threads = threads_of(options);
  outcome.document = stair_document();
  const std::vector<Staircase> found = search_all(options, request, outcome.threads);
  const Staircase merged = envelope(found);
  for (const StairPoint& point : thinned(merged.points, points)) {
    outcome.document.rows.push_back(stair_row(outcome.document, request, point, point.sram));
    if (request.pass == Pass::forward) {
      outcome.document.rows.back().extra_json = envelope_json(request, point.sram);
    }
  }
  outcome.document.footer = envelope_text(request, found, merged);
  outcome.document.figure_svg = plot_of(request, found, merged);
  add_plot_file(options, outcome);
  return outcome;
}

}  // namespace flashbound
