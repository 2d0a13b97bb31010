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

// Points that a thread takes at a time, and those between two writes. A count is microseconds, a
// search of tiles up to seconds.
struct Pace {
  Index part = 1;
  Index batch = 1;
};
Pace pace_of(const SweepPlan& plan, Index threads) {
  return plan.base.verb().verb == kCount ? Pace{64, 8192} : Pace{1, threads};
}

constexpr Index kPrinted = 65536;  // that a table on standard output may have

Index parts_of(Index begin, Index end, Index part) { return (end - begin + part - 1) / part; }

// Calls take(part, document) with the rows of each part of points [begin, end) of the shard, on
// some thread; returns when all parts are done.
template <class Take>
void run_points(const SweepPlan& plan, Index begin, Index end, Index size,
                const ParallelFor& parallel_for, const Take& take) {
  parallel_for(parts_of(begin, end, size), [&](Index part) {
    Document document = sweep_document(plan.base.verb());
    Options options = plan.base;
    const Index first = begin + part * size;
    for (Index n = first; n < std::min(end, first + size); ++n) {
      const Index point = plan.own_point(n);
      set_point(plan, point, options);
      append_point(options, point, document);
    }
    take(static_cast<std::size_t>(part), std::move(document));
  });
}

void write_file(const SweepPlan& plan, const Pace& pace, SweepFile& file,
                const ParallelFor& parallel_for, Progress& progress) {
  const Index points = plan.own_points();
  for (Index begin = file.done(); begin < points; begin += pace.batch) {
    const Index end = std::min(points, begin + pace.batch);
    std::vector<std::string> lines(static_cast<std::size_t>(parts_of(begin, end, pace.part)));
    run_points(plan, begin, end, pace.part, parallel_for,
               [&](std::size_t part, const Document& document) {
                 std::ostringstream text;
                 write(text, document, Format::jsonl, "");
                 lines[part] = std::move(text).str();
               });
    std::string batch;
    for (const std::string& part : lines) batch += part;
    file.append(batch);
    progress.step();
  }
  file.append(trailer_line(points) + "\n");
}

}  // namespace

Outcome run_sweep(const Options& options) {
  if (options.text("output") != "-") {
    if (options.given("format") && options.text("format") != "jsonl") {
      reject("format", options.text("format"), "jsonl in a file that can be resumed");
    }
    if (options.given("report")) reject("report", options.text("report"), "absent with output");
  }
  const SweepPlan plan = sweep_plan(options);
  Outcome outcome;
  outcome.threads = threads_of(options);
  outcome.document = sweep_document(plan.base.verb());
  const Pace pace = pace_of(plan, outcome.threads);
  const ParallelFor parallel_for = interruptible(threaded(outcome.threads));
  const ProgressWish wish = options.flag("quiet") ? ProgressWish::quiet : ProgressWish::shown;
  try {
    if (options.text("output") != "-") {
      outcome.written_elsewhere = true;
      SweepFile file(options.text("output"), plan, options.flag("force"));
      if (file.complete()) return outcome;
      Progress progress("sweep", (plan.own_points() - file.done()) / pace.batch + 1, wish);
      write_file(plan, pace, file, parallel_for, progress);
      return outcome;
    }
    if (plan.own_points() > kPrinted) {
      reject("output", "-", "a file for over " + std::to_string(kPrinted) + " points");
    }
    std::vector<Document> parts(
        static_cast<std::size_t>(parts_of(0, plan.own_points(), pace.part)));
    run_points(plan, 0, plan.own_points(), pace.part, parallel_for,
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
