#include "core/errors.hpp"
#include "experiments/command.hpp"
#include "experiments/parallel_for.hpp"
#include "experiments/progress.hpp"
#include "experiments/verify.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>

namespace flashbound {
namespace {

constexpr std::string_view kColumnNames[] = {
    "algorithm", "status",           "problem",           "check",
    "quantity",  "worst_difference", "allowed_difference"};

VerifyPlan plan_of(const Options& options) {
  VerifyPlan plan;
  plan.seed =
      static_cast<std::uint64_t>(options.integer("seed", 0, std::numeric_limits<Index>::max()));
  const std::string wanted = options.text("problem");
  std::string names = "all";
  const auto is_wanted = [&](const std::string& name) {
    names += ", " + name;
    return wanted == "all" || wanted == name;
  };
  for (VerifyProblem& problem : verify_problems()) {
    if (is_wanted(problem.name)) plan.problems.push_back(std::move(problem));
  }
  const auto folder = [&] {
    return options.given("activations") ? options.text("activations") : default_activations();
  };
  for (const std::string& name : recorded_names()) {
    if (is_wanted(name)) plan.recorded.push_back(read_recorded(folder(), name));
  }
  if (plan.problems.empty() && plan.recorded.empty()) {
    reject("problem", wanted, "one of " + names);
  }
  return plan;
}

std::string verdict_line(const std::vector<VerifyCheck>& checks) {
  Index failed = 0;
  for (const VerifyCheck& check : checks) failed += check.passed ? 0 : 1;
  return fmt::format("{} checks, {} failed", checks.size(), failed);
}

// One row a check and algorithm, as CSV and JSON have it.
Document full_document(const std::vector<VerifyCheck>& checks) {
  Document document;
  document.columns = columns_named(kColumnNames);
  for (const VerifyCheck& check : checks) {
    Row row;
    set(document, row, "problem", check.problem);
    set(document, row, "check", check.check);
    set(document, row, "algorithm", check.algorithm);
    set(document, row, "quantity", check.quantity);
    set(document, row, "worst_difference", check.worst_difference);
    set(document, row, "allowed_difference", check.allowed_difference);
    set(document, row, "status", std::string(check.passed ? "pass" : "fail"));
    document.rows.push_back(std::move(row));
  }
  return document;
}

// For people: the algorithms that passed a check share a row, which shows the nearest to failing;
// those that failed have one each.
std::vector<VerifyCheck> grouped(const std::vector<VerifyCheck>& checks) {
  std::vector<VerifyCheck> rows;
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, Index>> at;
  for (const VerifyCheck& check : checks) {
    if (!check.passed) {
      rows.push_back(check);
      continue;
    }
    const auto [found, is_new] = at.try_emplace({check.problem, check.check}, rows.size(), 0);
    auto& [row, members] = found->second;
    if (is_new) {
      rows.push_back(check);
    } else {
      rows[row] = worse(rows[row], check);
    }
    ++members;
  }
  for (const auto& [key, place] : at) {
    if (place.second > 1) rows[place.first].algorithm = fmt::format("{} algorithms", place.second);
  }
  return rows;
}

}  // namespace

Outcome run_verify_verb(const Options& options) {
  const VerifyPlan plan = plan_of(options);
  Outcome outcome;
  outcome.threads = threads_of(options);
  std::vector<VerifyCheck> checks;
  {
    Progress progress("verify", verify_step_count(plan),
                      options.flag("quiet") ? ProgressWish::quiet : ProgressWish::shown);
    checks = run_verify(plan, threaded(outcome.threads), [&] {
      progress.step();
      return !interrupted;
    });
  }
  const bool as_table = format_named(options.text("format")) == Format::table;
  outcome.document = full_document(as_table ? grouped(checks) : checks);
  outcome.document.shown = {
      "problem", "check", "algorithm", "quantity", "worst_difference", "allowed_difference",
      "status"};
  outcome.document.footer = verdict_line(checks);
  for (const VerifyCheck& check : checks) {
    if (!check.passed) outcome.exit_code = kFailed;
  }
  if (interrupted) outcome.exit_code = kInterrupted;
  return outcome;
}

}  // namespace flashbound
