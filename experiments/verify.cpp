#include "experiments/verify.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <random>

namespace flashbound {
namespace {

constexpr NumberFormat kArithmetics[] = {NumberFormat::fp64, NumberFormat::fp32};

// Where a numeric check belongs: all heads of a recorded problem make one row.
struct Job {
  const NumericTarget* target = nullptr;
  const Algorithm* algorithm = nullptr;
  NumberFormat format = NumberFormat::fp64;
  std::size_t row = 0;
};

struct CountJob {
  const std::string* name = nullptr;
  const Problem* problem = nullptr;
  Tile tile{};
  const Algorithm* algorithm = nullptr;
};

std::vector<CountJob> count_jobs(const VerifyPlan& plan) {
  std::vector<CountJob> jobs;
  for (const VerifyProblem& p : plan.problems) {
    for (const Algorithm& a : algorithms()) jobs.push_back({&p.name, &p.problem, p.tile, &a});
  }
  for (const RecordedInputs& p : plan.recorded) {
    for (const Algorithm& a : algorithms()) jobs.push_back({&p.name, &p.problem, p.tile, &a});
  }
  return jobs;
}

// Seeded values for one group of heads of a published shape, and which head of it is computed.
struct SyntheticGroup {
  Problem problem;
  OwnedInputs inputs;
  Index head = 0;
};

// A problem's own seed, the same whichever other problems are checked (FNV-1a over its name).
std::uint64_t seed_for(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

SyntheticGroup synthetic_group(const VerifyProblem& published, std::uint64_t seed) {
  SyntheticGroup group;
  group.problem = one_group(published.problem);
  group.inputs = normal_inputs(group.problem, seed);
  round_to_fp32(group.inputs);  // fp64 and fp32 runs begin with the same values
  std::mt19937_64 engine(seed);
  group.head = static_cast<Index>(engine() % static_cast<std::uint64_t>(group.problem.num_heads_q));
  return group;
}

// Stops handing out work once a step has asked to.
class Steps {
 public:
  explicit Steps(const std::function<bool()>& step) : step_(step) {}
  bool stopped() const { return stopped_; }
  void done() {
    if (!step_()) stopped_ = true;
  }

 private:
  const std::function<bool()>& step_;
  std::atomic<bool> stopped_ = false;
};

using Results = std::vector<std::optional<VerifyCheck>>;

void append(std::vector<VerifyCheck>& checks, const Results& results) {
  for (const auto& result : results) {
    if (result) checks.push_back(*result);
  }
}

void run_counts(const VerifyPlan& plan, const ParallelFor& parallel_for, Steps& steps,
                std::vector<VerifyCheck>& checks) {
  const std::vector<CountJob> jobs = count_jobs(plan);
  Results closed(jobs.size());
  Results recorded(jobs.size());
  Results traced(jobs.size());
  Results bounded(jobs.size());
  parallel_for(static_cast<Index>(jobs.size()), [&](Index index) {
    if (steps.stopped()) return;
    const auto at = static_cast<std::size_t>(index);
    const CountJob& job = jobs[at];
    closed[at] = check_closed_form(*job.name, *job.algorithm, *job.problem, job.tile);
    recorded[at] = check_record(*job.name, *job.algorithm, *job.problem, job.tile);
    traced[at] = check_trace(*job.name, *job.algorithm, *job.problem, job.tile);
    bounded[at] = check_lower_bound(*job.name, *job.algorithm, *job.problem, job.tile);
    steps.done();
  });
  for (const Results* results : {&closed, &recorded, &traced, &bounded}) append(checks, *results);
}

void run_numerics(const std::vector<NumericTarget>& targets, const ParallelFor& parallel_for,
                  Steps& steps, std::vector<VerifyCheck>& checks) {
  std::vector<Job> jobs;
  std::size_t rows = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    // Heads of one problem follow each other and share its rows.
    const bool same_problem = t > 0 && targets[t].name == targets[t - 1].name;
    if (same_problem) rows -= algorithms(Pass::forward).size() * std::size(kArithmetics);
    for (const NumberFormat format : kArithmetics) {
      for (const Algorithm& a : algorithms(Pass::forward)) {
        jobs.push_back({&targets[t], &a, format, rows++});
      }
    }
  }
  Results results(jobs.size());
  parallel_for(static_cast<Index>(jobs.size()), [&](Index index) {
    if (steps.stopped()) return;
    const auto at = static_cast<std::size_t>(index);
    results[at] = check_numeric(*jobs[at].target, *jobs[at].algorithm, jobs[at].format);
    steps.done();
  });
  Results merged(rows);
  for (std::size_t at = 0; at < jobs.size(); ++at) {
    std::optional<VerifyCheck>& row = merged[jobs[at].row];
    if (results[at]) row = row ? worse(*row, *results[at]) : *results[at];
  }
  append(checks, merged);
}

void run_exact(const std::vector<NumericTarget>& targets, const ParallelFor& parallel_for,
               Steps& steps, std::vector<VerifyCheck>& checks) {
  std::vector<const NumericTarget*> affordable;
  for (const NumericTarget& target : targets) {
    if (affordable_exactly(*target.problem)) affordable.push_back(&target);
  }
  Results results(affordable.size());
  parallel_for(static_cast<Index>(affordable.size()), [&](Index index) {
    if (steps.stopped()) return;
    const auto at = static_cast<std::size_t>(index);
    results[at] = check_exact(*affordable[at]);
    steps.done();
  });
  // Heads of one problem are one row.
  std::vector<VerifyCheck> rows;
  for (const std::optional<VerifyCheck>& result : results) {
    if (!result) continue;
    if (!rows.empty() && rows.back().problem == result->problem) {
      rows.back() = worse(rows.back(), *result);
    } else {
      rows.push_back(*result);
    }
  }
  checks.insert(checks.end(), rows.begin(), rows.end());
}

// All that was checked of one problem together, problems in the plan's order.
void sort_by_problem(const VerifyPlan& plan, std::vector<VerifyCheck>& checks) {
  std::map<std::string, std::size_t> place;
  for (const VerifyProblem& p : plan.problems) place.try_emplace(p.name, place.size());
  for (const RecordedInputs& p : plan.recorded) place.try_emplace(p.name, place.size());
  std::stable_sort(checks.begin(), checks.end(), [&](const VerifyCheck& a, const VerifyCheck& b) {
    return place.at(a.problem) < place.at(b.problem);
  });
}

}  // namespace

Index verify_step_count(const VerifyPlan& plan) {
  std::size_t heads = 0;
  std::size_t exact = 0;
  const auto add_heads = [&](const Problem& problem, Index count) {
    heads += static_cast<std::size_t>(count);
    if (affordable_exactly(problem)) exact += static_cast<std::size_t>(count);
  };
  for (const VerifyProblem& p : plan.problems) add_heads(p.problem, 1);
  for (const RecordedInputs& p : plan.recorded) add_heads(p.problem, p.problem.num_heads_q);
  const std::size_t counts = (plan.problems.size() + plan.recorded.size()) * algorithms().size();
  const std::size_t numerics = heads * algorithms(Pass::forward).size() * std::size(kArithmetics);
  return static_cast<Index>(counts + numerics + heads + exact);  // and one step a reference
}

std::vector<VerifyCheck> run_verify(const VerifyPlan& plan, const ParallelFor& parallel_for,
                                    const std::function<bool()>& step) {
  std::vector<VerifyCheck> checks;
  Steps steps(step);
  run_counts(plan, parallel_for, steps, checks);

  std::vector<SyntheticGroup> groups;
  groups.reserve(plan.problems.size());  // targets point into it
  std::vector<NumericTarget> targets;
  const auto add_target = [&](const std::string& name, const Problem& problem, const Tile& tile,
                              const Inputs& inputs, Index head) {
    if (steps.stopped()) return;
    targets.push_back(
        numeric_target(name, problem, tile, inputs, sequence(problem, 0), head, parallel_for));
    steps.done();
  };
  for (const VerifyProblem& published : plan.problems) {
    groups.push_back(synthetic_group(published, seed_for(published.name, plan.seed)));
    const SyntheticGroup& group = groups.back();
    add_target(published.name, group.problem, published.tile, group.inputs.view(), group.head);
  }
  for (const RecordedInputs& real : plan.recorded) {
    for (Index head = 0; head < real.problem.num_heads_q; ++head) {
      add_target(real.name, real.problem, real.tile, real.inputs.view(), head);
    }
  }
  run_numerics(targets, parallel_for, steps, checks);
  run_exact(targets, parallel_for, steps, checks);
  sort_by_problem(plan, checks);
  return checks;
}

}  // namespace flashbound
