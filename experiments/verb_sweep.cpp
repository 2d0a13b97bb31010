#include "core/errors.hpp"
#include "experiments/command.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/parallel_for.hpp"
#include "experiments/progress.hpp"
#include "experiments/sweep_file.hpp"
#include "experiments/sweep_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace flashbound {
namespace {

constexpr Index kPart = 64;        // points that a thread takes at a time
constexpr Index kBatch = 8192;     // points between two writes
constexpr Index kPrinted = 65536;  // that a table on standard output may have

Index parts_of(Index begin, Index end) { return (end - begin + kPart - 1) / kPart; }

// Calls take(part, document) with the rows of each part of points [begin, end) of the shard, on
// some thread; returns when all parts are done.
template <class Take>
void run_points(const SweepPlan& plan, Index begin, Index end, const ParallelFor& parallel_for,
                const Take& take) {
  parallel_for(parts_of(begin, end), [&](Index part) {
    Document document = sweep_document(plan.base.verb());
    Options options = plan.base;
    const Index first = begin + part * kPart;
    for (Index n = first; n < std::min(end, first + kPart); ++n) {
      const Index point = plan.own_point(n);
      set_point(plan, point, options);
      append_point(options, point, document);
    }
    take(static_cast<std::size_t>(part), std::move(document));
  });
}

void write_file(const SweepPlan& plan, SweepFile& file, const ParallelFor& parallel_for,
                Progress& progress) {
  const Index points = plan.own_points();
  for (Index begin = file.done(); begin < points; begin += kBatch) {
    const Index end = std::min(points, begin + kBatch);
    std::vector<std::string> lines(static_cast<std::size_t>(parts_of(begin, end)));
    run_points(plan, begin, end, parallel_for, [&](std::size_t part, const Document& document) {
      std::ostringstream text;
      write(text, document, Format::jsonl, "");
      lines[part] = std::move(text).str();
    });
    std::string batch;
    for (const std::string& part : lines) batch += part;
    file.append(batch);
    progress.step();
  }
  file.append(sweep_trailer(points) + "\n");
}

}  // namespace

Outcome run_sweep(const Options& options) {
  const SweepPlan plan = sweep_plan(options);
  Outcome outcome;
  outcome.threads = threads_of(options);
  outcome.document = sweep_document(plan.base.verb());
  const ParallelFor parallel_for = interruptible(threaded(outcome.threads));
  const ProgressWish wish = options.flag("quiet") ? ProgressWish::quiet : ProgressWish::shown;
  try {
    if (options.text("output") != "-") {
      outcome.written_elsewhere = true;
      SweepFile file(options.text("output"), plan, options.flag("force"));
      if (file.complete()) return outcome;
      Progress progress("sweep", (plan.own_points() - file.done()) / kBatch + 1, wish);
      write_file(plan, file, parallel_for, progress);
      return outcome;
    }
    if (plan.own_points() > kPrinted) {
      reject("output", "-", "a file for over " + std::to_string(kPrinted) + " points");
    }
    std::vector<Document> parts(static_cast<std::size_t>(parts_of(0, plan.own_points())));
    run_points(plan, 0, plan.own_points(), parallel_for,
               [&](std::size_t part, Document document) { parts[part] = std::move(document); });
    for (Document& part : parts) {
      std::move(part.rows.begin(), part.rows.end(), std::back_inserter(outcome.document.rows));
    }
  } catch (const Interrupted&) {
    outcome.exit_code = kInterrupted;  // finished batches are kept
  }
  return outcome;
}

}  // namespace flashbound
