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
      "least: {} with block_q {} and block_kv {}, {}; footprint {}", first.algorithm,
      first.tile.block_q, first.tile.block_kv,
      all_tiles ? "over all tiles" : "over the tiles that were tried",
      request.search.footprint == FootprintKind::kernel
          ? "of a kernel's buffers"
          : fmt::format("uniform, every number a word of {}", name(request.search.dtype)));
}

// The best first, those that do not fit last. Returns the sentence below the table.
std::string append_best(const StairRequest& request, Bytes sram,
                        const std::vector<Staircase>& found, Document& document) {
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
    document.rows.push_back(stair_row(document, request, *point, sram));
  }
  for (std::size_t a = 0; a < found.size(); ++a) {
    if (found[a].at(sram) != nullptr) continue;
    document.rows.push_back(infeasible_stair_row(document, request, request.algorithms[a]->name,
                                                 found[a].points.front().sram, sram));
  }
  return footer_of(request, best, all_tiles);
}

}  // namespace

void append_tiles(const Options& options, Document& document) {
  const StairRequest request = stair_request(options);
  std::vector<Staircase> found;
  for (const Algorithm* algorithm : request.algorithms) {
    found.push_back(staircase(*algorithm, request.problem, request.search));
  }
  append_best(request, sram_of(options), found, document);
}

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
  outcome.document.footer = append_best(request, sram, found, outcome.document);
  return outcome;
}

}  // namespace flashbound
