#include "experiments/command.hpp"
#include "experiments/model_options.hpp"
#include "experiments/stair_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace flashbound {
namespace {

std::string footer_of(const StairRequest& request, const std::vector<const StairPoint*>& best,
                      bool all_tiles) {
  if (best.empty()) return "nothing fits";
  const StairPoint& first = *best.front();
  return fmt::format(
      "least: {} with block_q {} and block_kv {}, {}; uniform numbers are words of {}",
      first.algorithm, first.tile.block_q, first.tile.block_kv,
      all_tiles ? "over all tiles" : "over the tiles that were tried", name(request.search.dtype));
}

}  // namespace

// The best first, those that do not fit last.
Outcome run_tile(const Options& options) {
  const StairRequest request = stair_request(options);
  const Bytes sram = sram_of(options);
  Outcome outcome;
  outcome.threads = threads_of(options);
  outcome.document = stair_document();
  outcome.document.shown = {"algorithm",       "block_q",   "block_kv",
                            "sram_peak_bytes", "hbm_bytes", "ratio_to_lower_bound",
                            "status",          "reason"};
  const std::vector<Staircase> found = search_all(options, request, outcome.threads);
  std::vector<const StairPoint*> best;
  bool all_tiles = true;
  for (const Staircase& stairs : found) {
    all_tiles = all_tiles && stairs.all_tiles;
    if (const StairPoint* point = stairs.at(sram)) best.push_back(point);
  }
  std::stable_sort(best.begin(), best.end(), [](const StairPoint* a, const StairPoint* b) {
    return a->moved() < b->moved();
  });
  for (const StairPoint* point : best) {
    outcome.document.rows.push_back(stair_row(outcome.document, request, *point, sram));
  }
  for (std::size_t a = 0; a < found.size(); ++a) {
    if (found[a].at(sram) != nullptr) continue;
    outcome.document.rows.push_back(infeasible_stair_row(outcome.document, request,
                                                         request.algorithms[a]->name,
                                                         found[a].points.front().sram, sram));
  }
  outcome.document.footer = footer_of(request, best, all_tiles);
  return outcome;
}

}  // namespace flashbound
