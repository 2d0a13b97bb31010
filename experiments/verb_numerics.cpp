#include "core/errors.hpp"
#include "experiments/command.hpp"
#include "experiments/distributions.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/numerics/measure.hpp"
#include "experiments/numerics_claims.hpp"
#include "experiments/numerics_request.hpp"
#include "experiments/numerics_rows.hpp"
#include "experiments/parallel_for.hpp"
#include "experiments/progress.hpp"

#include <utility>

namespace flashbound {
namespace {

ProgressWish wish_of(const Options& options) {
  return options.flag("quiet") ? ProgressWish::quiet : ProgressWish::shown;
}

// The inputs of the last point, which the next one often shares.
struct KeptInputs {
  bool filled = false;
  Problem problem{};
  std::string distribution;
  std::uint64_t seed = 0;
  OwnedInputs inputs{};
};

const OwnedInputs& inputs_of(const NumericsRequest& request, const NumericsPoint& point,
                             KeptInputs& kept) {
  if (request.files) return request.files->inputs;
  const bool fits = kept.filled && kept.problem == point.problem &&
                    kept.distribution == point.distribution && kept.seed == point.seed;
  if (fits) return kept.inputs;
  kept.filled = false;  // what follows may throw
  kept.inputs = distribution_inputs(point.distribution, point.problem, point.seed);
  kept.problem = point.problem;
  kept.distribution = point.distribution;
  kept.seed = point.seed;
  kept.filled = true;
  return kept.inputs;
}

struct Session {
  const NumericsRequest& request;
  ParallelFor parallel_for;
  Progress& progress;
  KeptInputs inputs{};
  KeptReference reference{};
};

// Values have been judged by now: what is refused here is their combination.
Row row_of(const Document& document, const NumericsPoint& point, Session& session) {
  const NumericsRequest& request = session.request;
  const Program program = point.algorithm->program();
  try {
    MeasuredRun run;
    run.program = &program;
    run.problem = &point.problem;
    run.tile = point.tile;
    run.recipe = &point.recipe->recipe;
    run.inputs = &inputs_of(request, point, session.inputs);
    run.seed = point.seed;
    run.reference = request.reference;
    run.reference_inputs = request.reference_inputs;
    const Measurement measurement =
        measure(run, session.reference, session.parallel_for, [&] { session.progress.step(); });
    return measured_row(document, request, point, measurement);
  } catch (const ConfigError& error) {
    return infeasible_row(document, request, point, error.what());
  }
}

Index steps_of(const NumericsRequest& request) {
  Index steps = 0;
  for (const NumericsPoint& point : request.points) steps += head_count(point.problem);
  return steps;
}

Outcome run_claims(const Options& options, const std::vector<const NumericClaim*>& claims) {
  Outcome outcome;
  outcome.threads = threads_of(options);
  const ParallelFor parallel_for = interruptible(threaded(outcome.threads));
  std::vector<RecomputedClaim> recomputed;
  try {
    Progress progress("claims", static_cast<Index>(claims.size()), wish_of(options));
    for (const NumericClaim* claim : claims) {
      if (interrupted) throw Interrupted();
      recomputed.push_back({claim, claim->run(parallel_for)});
      progress.step();
    }
  } catch (const Interrupted&) {
    outcome.exit_code = kInterrupted;
  }
  outcome.document = claims_document(recomputed, format_named(options.text("format")));
  return outcome;
}

}  // namespace

Outcome run_numerics(const Options& options) {
  const std::vector<const NumericClaim*> claims = requested_claims(options);
  if (options.given("claim")) return run_claims(options, claims);
  const NumericsRequest request = numerics_request(options);
  Outcome outcome;
  outcome.threads = threads_of(options);
  outcome.document = numerics_document();
  try {
    Progress progress("numerics", steps_of(request), wish_of(options));
    Session session{request, interruptible(threaded(outcome.threads)), progress};
    for (const NumericsPoint& point : request.points) {
      if (interrupted) throw Interrupted();
      outcome.document.rows.push_back(row_of(outcome.document, point, session));
    }
  } catch (const Interrupted&) {
    outcome.exit_code = kInterrupted;  // finished rows are kept
  }
  finish_numerics_table(request, outcome.document);
  return outcome;
}

}  // namespace flashbound
