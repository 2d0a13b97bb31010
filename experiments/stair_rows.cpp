#include "experiments/stair_rows.hpp"

#include "core/errors.hpp"
#include "core/lower_bound.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/model_options.hpp"
#include "experiments/parallel_for.hpp"
#include "experiments/problem_columns.hpp"
#include "experiments/problem_options.hpp"
#include "experiments/progress.hpp"

#include <cmath>

namespace flashbound {
namespace {

constexpr Index kPointsMax = Index{1} << 20;

Row common_row(const Document& document, const StairRequest& request, Bytes sram) {
  Row row;
  set_problem(document, row, request.problem);
  const auto text = [&](std::string_view column, std::string value) {
    set(document, row, column, std::move(value));
  };
  text("dtype", std::string(name(request.search.dtype)));
  text("policy", "scratchpad");
  text("boundary", "hbm");
  text("footprint", std::string(name(request.search.footprint)));
  text("method", "closed-form");
  const LowerBound bound = lower_bound(request.problem, request.search.dtype, request.pass, sram);
  set(document, row, "sram_bytes", sram.value());
  set(document, row, "lower_bound_bytes", bound.bytes().value());
  set(document, row, "compulsory_bytes", bound.compulsory.bytes().value());
  set(document, row, "segment_bound_bytes", bound.segment.read.value());
  set(document, row, "product_bound_bytes", bound.product.moved.value());
  return row;
}

}  // namespace

StairRequest stair_request(const Options& options) {
  StairRequest request;
  request.problem = problem_of(options, std::nullopt, Emptiness::rejected);
  const FootprintChoice footprint = footprint_of(options);
  request.search = {dtype_of(options), footprint.kind, footprint.stages};
  require_hbm_boundary(options);
  request.algorithms = algorithms_of(options, true);
  request.pass = request.algorithms.front()->pass;
  for (const Algorithm* algorithm : request.algorithms) {
    if (algorithm->pass != request.pass) {
      reject("algorithm", options.text("algorithm"), "algorithms of one pass");
    }
  }
  return request;
}

Document stair_document() {
  Document document = document_with_problem({"algorithm",
                                             "dtype",
                                             "block_q",
                                             "block_kv",
                                             "num_splits",
                                             "policy",
                                             "boundary",
                                             "sram_bytes",
                                             "sram_peak_bytes",
                                             "hbm_read_bytes",
                                             "hbm_write_bytes",
                                             "hbm_bytes",
                                             "lower_bound_bytes",
                                             "ratio_to_lower_bound",
                                             "status",
                                             "reason",
                                             "panel",
                                             "footprint",
                                             "method",
                                             "compulsory_bytes",
                                             "segment_bound_bytes",
                                             "product_bound_bytes"});
  document.shown = {"algorithm", "sram_bytes",           "block_q", "block_kv",
                    "hbm_bytes", "ratio_to_lower_bound", "status"};
  return document;
}

Row stair_row(const Document& document, const StairRequest& request, const StairPoint& point,
              Bytes sram) {
  Row row = common_row(document, request, sram);
  const auto integer = [&](std::string_view column, Int128 value) {
    set(document, row, column, value);
  };
  set(document, row, "algorithm", std::string(point.algorithm));
  integer("block_q", point.tile.block_q);
  integer("block_kv", point.tile.block_kv);
  integer("num_splits", point.tile.num_splits);
  integer("panel", point.tile.panel);
  integer("sram_peak_bytes", point.sram.value());
  integer("hbm_read_bytes", point.read.value());
  integer("hbm_write_bytes", point.written.value());
  integer("hbm_bytes", point.moved().value());
  const Bytes bound =
      lower_bound(request.problem, request.search.dtype, request.pass, sram).bytes();
  if (bound.value() > 0) set(document, row, "ratio_to_lower_bound", ratio(point.moved(), bound));
  set(document, row, "status", std::string("ok"));
  return row;
}

Row infeasible_stair_row(const Document& document, const StairRequest& request,
                         std::string_view algorithm, Bytes least, Bytes sram) {
  Row row = common_row(document, request, sram);
  set(document, row, "algorithm", std::string(algorithm));
  set(document, row, "status", std::string("infeasible"));
  set(document, row, "reason", *infeasible_reason(least, sram, request.search.footprint));
  return row;
}

std::vector<StairPoint> thinned(const std::vector<StairPoint>& all, Index points) {
  if (points == 0 || static_cast<Index>(all.size()) <= points) return all;
  const auto log_of = [](const StairPoint& point) {
    return std::log(static_cast<double>(point.sram.value()));
  };
  const double low = log_of(all.front());
  const double step =
      (log_of(all.back()) - low) / static_cast<double>(std::max<Index>(points, 2) - 1);
  std::vector<StairPoint> kept;
  for (const StairPoint& point : all) {
    // The first point at or past the next mark.
    const double mark = low + step * static_cast<double>(kept.size());
    if (log_of(point) >= mark - 1e-9) kept.push_back(point);
  }
  if (kept.back().sram != all.back().sram) kept.back() = all.back();
  return kept;
}

Index points_of(const Options& options) {
  if (options.text("points") == "all") return 0;
  const Index points = parse_integer("points", options.text("points"));
  if (points < 2 || points > kPointsMax) {
    reject("points", std::to_string(points), "all, or 2 to " + std::to_string(kPointsMax));
  }
  return points;
}

std::vector<Staircase> search_all(const Options& options, const StairRequest& request,
                                  Index threads) {
  Progress progress("algorithms", static_cast<Index>(request.algorithms.size()),
                    options.flag("quiet") ? ProgressWish::quiet : ProgressWish::shown);
  const ParallelFor parallel_for = interruptible(threaded(threads));
  std::vector<Staircase> found;
  for (const Algorithm* algorithm : request.algorithms) {
    found.push_back(staircase(*algorithm, request.problem, request.search, parallel_for));
    progress.step();
  }
  return found;
}

}  // namespace flashbound
