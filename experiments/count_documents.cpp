#include "experiments/count_documents.hpp"

#include "core/errors.hpp"
#include "core/record.hpp"

namespace flashbound {
namespace {

// About 200 MB while the document is made.
constexpr Index kEventsMax = 200'000;

void require_short_log(const Program& program, const Schedule& schedule, NumberFormat dtype) {
  Index events = 0;
  record(program, schedule, dtype, [&](const Event&) {
    if (++events > kEventsMax) {
      reject("record-out", "over " + std::to_string(kEventsMax) + " events",
             "at most " + std::to_string(kEventsMax) + " (larger blocks or shorter sequences)");
    }
  });
}

}  // namespace

void write_count_documents(const Options& options, const Algorithm& algorithm,
                           const Problem& problem, const Tile& tile, NumberFormat dtype,
                           Outcome& outcome) {
  const Overwrite overwrite = options.flag("force") ? Overwrite::yes : Overwrite::no;
  const Program program = algorithm.program();
  if (options.given("program-out")) {
    outcome.files.push_back(std::make_unique<AtomicFile>(options.text("program-out"), overwrite));
    outcome.files.back()->stream() << to_json(program) << "\n";
  }
  if (options.given("record-out")) {
    const Schedule schedule = schedule_for(problem, tile, sequence(problem, 0));
    require_short_log(program, schedule, dtype);
    outcome.files.push_back(std::make_unique<AtomicFile>(options.text("record-out"), overwrite));
    outcome.files.back()->stream() << record_json(program, schedule, dtype) << "\n";
  }
}

}  // namespace flashbound
