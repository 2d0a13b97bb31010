// The main job: every check that this machine can run, on published shapes and on real input.
#pragma once

#include "experiments/recorded_inputs.hpp"
#include "experiments/verify_checks.hpp"
#include "experiments/verify_problems.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace flashbound {

struct VerifyPlan {
  std::vector<VerifyProblem> problems;   // counted whole, computed on one seeded head
  std::vector<RecordedInputs> recorded;  // counted and computed whole
  std::uint64_t seed = 0;
};

// How many steps a run will report.
Index verify_step_count(const VerifyPlan& plan);

// All checks, in an order that depends on the plan alone. `step` is called once a finished step,
// from any of the threads that parallel_for brings; false asks to stop, and the checks finished so
// far are returned.
std::vector<VerifyCheck> run_verify(const VerifyPlan& plan, const ParallelFor& parallel_for,
                                    const std::function<bool()>& step);

}  // namespace flashbound
