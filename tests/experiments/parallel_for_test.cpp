// Threads: each part once, errors reach the caller, and no result depends on how many there are.
#include "experiments/parallel_for.hpp"

#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"
#include "experiments/verify.hpp"
#include "tests/core/one_head.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace flashbound {
namespace {

Problem small_problem() {
  Problem problem =
      testing::one_head({.seqlen_q = 37, .seqlen_kv = 53, .head_dim = 8, .head_dim_v = 5});
  problem.num_heads_q = 4;
  problem.num_heads_kv = 2;
  problem.window_right = 0;
  return problem;
}

VerifyPlan small_plan() {
  const Tile tile{.block_q = 16, .block_kv = 8, .panel = 4, .num_splits = 3};
  VerifyPlan plan;
  plan.seed = 7;
  plan.problems.push_back({"small", "none", small_problem(), tile});
  RecordedInputs recorded;
  recorded.name = "recorded";
  recorded.problem = small_problem();
  recorded.tile = tile;
  recorded.inputs = normal_inputs(recorded.problem, 3);
  round_to_fp32(recorded.inputs);
  plan.recorded.push_back(std::move(recorded));
  return plan;
}

void check_equal(const std::vector<VerifyCheck>& a, const std::vector<VerifyCheck>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].problem);
    CAPTURE(a[i].check);
    CAPTURE(a[i].algorithm);
    CHECK(a[i].problem == b[i].problem);
    CHECK(a[i].check == b[i].check);
    CHECK(a[i].algorithm == b[i].algorithm);
    CHECK(a[i].quantity == b[i].quantity);
    CHECK(a[i].worst_difference == b[i].worst_difference);
    CHECK(a[i].allowed_difference == b[i].allowed_difference);
    CHECK(a[i].share == b[i].share);
    CHECK(a[i].passed == b[i].passed);
  }
}

TEST_SUITE("experiments.threads") {
  TEST_CASE("every part runs once on any number of threads") {
    for (Index threads = 1; threads <= 8; ++threads) {
      for (const Index count : {0, 1, 2, 7, 8, 9, 1000}) {
        CAPTURE(threads);
        CAPTURE(count);
        std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
        threaded(threads)(count, [&](Index part) { ++runs[static_cast<std::size_t>(part)]; });
        for (const std::atomic<int>& times : runs) CHECK(times == 1);
      }
    }
  }

  TEST_CASE("no part runs on a thread beyond those asked for") {
    const auto caller = std::this_thread::get_id();
    threaded(1)(100, [&](Index) { CHECK(std::this_thread::get_id() == caller); });
    std::atomic<int> at_once = 0;
    std::atomic<int> most = 0;
    threaded(3)(1000, [&](Index) {
      const int now = ++at_once;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      --at_once;
    });
    CHECK(most >= 1);
    CHECK(most <= 3);
  }

  TEST_CASE("what parts write is seen by the caller") {
    std::vector<Index> squares(500);
    threaded(4)(500, [&](Index part) { squares[static_cast<std::size_t>(part)] = part * part; });
    for (Index part = 0; part < 500; ++part) {
      CHECK(squares[static_cast<std::size_t>(part)] == part * part);
    }
  }

  TEST_CASE("an exception of a part reaches the caller and ends the work") {
    for (Index threads = 1; threads <= 8; ++threads) {
      CAPTURE(threads);
      std::atomic<Index> begun = 0;
      const auto failing = [&](Index part) {
        ++begun;
        if (part == 3) throw std::runtime_error("part 3");
      };
      CHECK_THROWS_WITH_AS(threaded(threads)(1000000, failing), "part 3", std::runtime_error);
      CHECK(begun >= 4);
      // The same function object is good for another call.
      std::atomic<Index> sum = 0;
      threaded(threads)(10, [&](Index part) { sum += part; });
      CHECK(sum == 45);
    }
  }

  TEST_CASE("of many exceptions one reaches the caller") {
    CHECK_THROWS_AS(threaded(8)(64, [](Index) { throw std::runtime_error("each"); }),
                    std::runtime_error);
  }

  TEST_CASE("a part may run parts of its own") {
    const ParallelFor outer = threaded(3);
    std::vector<std::atomic<int>> runs(12 * 20);
    outer(12, [&](Index i) {
      outer(20, [&](Index j) { ++runs[static_cast<std::size_t>(i * 20 + j)]; });
    });
    for (const std::atomic<int>& times : runs) CHECK(times == 1);
  }

  TEST_CASE("the machine has at least one thread") { CHECK(hardware_threads() >= 1); }

  TEST_CASE("the reference is the same bits for one thread and for four") {
    Problem problem = small_problem();
    problem.batch = 2;
    const OwnedInputs inputs = normal_inputs(problem, 11);
    const Attention one = reference(problem, inputs.view(), threaded(1));
    const Attention four = reference(problem, inputs.view(), threaded(4));
    const Attention none = reference(problem, inputs.view());
    CHECK(one.o.elements == four.o.elements);
    CHECK(one.lse.elements == four.lse.elements);
    CHECK(one.o.elements == none.o.elements);
    CHECK(one.lse.elements == none.lse.elements);
  }

  TEST_CASE("verify gives the same checks for one thread and for four") {
    const VerifyPlan plan = small_plan();
    std::atomic<Index> steps = 0;
    const auto step = [&] {
      ++steps;
      return true;
    };
    const std::vector<VerifyCheck> one = run_verify(plan, threaded(1), step);
    CHECK(steps == verify_step_count(plan));
    check_equal(one, run_verify(plan, threaded(4), step));
    CHECK(steps == 2 * verify_step_count(plan));
    check_equal(one, run_verify(plan, serial, step));
    // For each of two problems four checks of every algorithm's counts, two formats of the forward
    // ones, and the reference against exact attention.
    CHECK(one.size() == 8 * algorithms().size() + 4 * algorithms(Pass::forward).size() + 2);
    for (const VerifyCheck& check : one) {
      CAPTURE(check.check);
      CAPTURE(check.algorithm);
      CHECK(check.passed);
      CHECK(check.share <= 1);
    }
  }

  TEST_CASE("a request to stop returns the checks that are finished") {
    const VerifyPlan plan = small_plan();
    const std::vector<VerifyCheck> whole = run_verify(plan, serial, [] { return true; });
    const auto stopped_after = [&](Index steps, Index threads) {
      std::atomic<Index> left = steps;
      return run_verify(plan, threaded(threads), [&] { return --left > 0; });
    };
    // A step of counts finishes four checks.
    CHECK(stopped_after(1, 1).size() == 4);
    CHECK(stopped_after(3, 1).size() == 12);
    const auto counts = static_cast<Index>(2 * algorithms().size());
    CHECK(stopped_after(counts, 1).size() == 8 * algorithms().size());
    const auto references = static_cast<Index>(1 + small_problem().num_heads_q);
    CHECK(stopped_after(counts + references + 1, 1).size() == 8 * algorithms().size() + 1);
    const std::vector<VerifyCheck> some = stopped_after(3, 4);
    CHECK(some.size() >= 12);
    CHECK(some.size() < whole.size());
    for (const VerifyCheck& check : some) CHECK(check.passed);
  }
}

}  // namespace
}  // namespace flashbound
