// Rows about the least that tiles move: points of staircases, for tile, envelope and curve.
#pragma once

#include "core/programs.hpp"
#include "experiments/options.hpp"
#include "experiments/results.hpp"
#include "sim/tile_search.hpp"

#include <initializer_list>
#include <string_view>
#include <vector>

namespace flashbound {

// What is searched: one problem, several algorithms of one pass.
struct StairRequest {
  Problem problem;
  TileSearch search;
  std::vector<const Algorithm*> algorithms;
  Pass pass = Pass::forward;
};

// Throws ConfigError, also for algorithms of both passes, which have different answers.
StairRequest stair_request(const Options& options);

// The columns of such rows.
Document stair_document();

// `point` in a fast memory of `sram` bytes, with the lower bounds there. method = closed-form.
Row stair_row(const Document& document, const StairRequest& request, const StairPoint& point,
              Bytes sram);

// An algorithm that needs at least `least` bytes.
Row infeasible_stair_row(const Document& document, const StairRequest& request,
                         std::string_view algorithm, Bytes least, Bytes sram);

// At most `points` of them, spread evenly in the logarithm of their sram, the ends among them; all
// for points = 0.
std::vector<StairPoint> thinned(const std::vector<StairPoint>& all, Index points);

// 64, a number, or all (0).
Index points_of(const Options& options);

// Searches every algorithm, a part a time, so that it can be interrupted; shows progress.
std::vector<Staircase> search_all(const Options& options, const StairRequest& request,
                                  Index threads);

}  // namespace flashbound
