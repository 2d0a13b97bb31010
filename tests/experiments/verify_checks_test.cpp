// A check that cannot fail shows nothing: wrong answers of every kind must be reported.
#include "experiments/verify_checks.hpp"

#include "experiments/random_inputs.hpp"
#include "tests/core/one_head.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Tile kTile{.block_q = 8, .block_kv = 4, .panel = 2, .num_splits = 2};

// One head with its reference, to be spoiled.
struct Trial {
  Problem problem =
      testing::one_head({.seqlen_q = 13, .seqlen_kv = 11, .head_dim = 4, .head_dim_v = 3});
  OwnedInputs inputs;
  NumericTarget target;

  Trial() : inputs(normal_inputs(problem, 5)) {
    round_to_fp32(inputs);
    target =
        numeric_target("trial", problem, kTile, inputs.view(), sequence(problem, 0), 0, serial);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  Trial(Trial&&) = delete;
  Trial& operator=(Trial&&) = delete;
  ~Trial() = default;

  VerifyCheck check(const char* algorithm = "flash2",
                    NumberFormat format = NumberFormat::fp64) const {
    return check_numeric(target, algorithm_named(algorithm), format);
  }
};

// flash2, its first statement of `op` carried out `times` over.
const Statement* find_op(const std::vector<Statement>& body, Op op) {
  for (const Statement& statement : body) {
    if (statement.op == op) return &statement;
    if (const Statement* inside = find_op(statement.body, op)) return inside;
  }
  return nullptr;
}

bool repeat_first(std::vector<Statement>& body, Op op) {
  for (auto at = body.begin(); at != body.end(); ++at) {
    if (at->op == op) {
      const Statement copy = *at;
      body.insert(at, copy);
      return true;
    }
    if (repeat_first(at->body, op)) return true;
  }
  return false;
}

Program storing_twice() {
  Program program = flash2_program();
  repeat_first(program.body, Op::store);
  return program;
}

const Algorithm kStoringTwice{"flash2", "stores O twice", "none", storing_twice};
const Algorithm kMisnamed{"flash1", "is flash2", "none", flash2_program};

TEST_SUITE("experiments.verify") {
  TEST_CASE("every algorithm passes on an honest reference in both widths") {
    const Trial trial;
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      for (const NumberFormat format : {NumberFormat::fp64, NumberFormat::fp32}) {
        CAPTURE(std::string(algorithm.name));
        const VerifyCheck check = check_numeric(trial.target, algorithm, format);
        CHECK(check.passed);
        CHECK(check.share <= 1);
        CHECK(check.problem == "trial");
        CHECK(check.algorithm == algorithm.name);
        CHECK(check.allowed_difference > 0);
        CHECK(check.worst_difference <= check.allowed_difference);
      }
    }
  }

  TEST_CASE("one element of O beyond its bound fails and is reported") {
    const Trial honest;
    const double allowed = honest.check().allowed_difference;
    for (const auto& [row, col] : {std::pair<Index, Index>{0, 0}, {12, 2}, {7, 1}}) {
      CAPTURE(row);
      Trial trial;
      trial.target.reference.o(row, col) += 1e-6;
      const VerifyCheck check = trial.check();
      CHECK(!check.passed);
      CHECK(check.quantity == "o");
      CHECK(check.share == kInfinity);
      CHECK(check.worst_difference == doctest::Approx(1e-6));
      CHECK(check.allowed_difference < 1e-6);
    }
    CHECK(allowed < 1e-6);
  }

  TEST_CASE("one lse beyond its bound fails and is reported") {
    for (const char* algorithm : {"flash2", "flash1", "split-kv"}) {
      CAPTURE(std::string(algorithm));
      Trial trial;
      trial.target.reference.lse(12) -= 1e-6;
      const VerifyCheck check = trial.check(algorithm);
      CHECK(!check.passed);
      CHECK(check.quantity == "lse");
      CHECK(check.worst_difference == doctest::Approx(1e-6));
    }
  }

  TEST_CASE("bounds are of the width: what fails in fp64 may pass in fp32") {
    Trial trial;
    trial.target.reference.o(3, 1) += 1e-12;
    CHECK(!trial.check("flash2", NumberFormat::fp64).passed);
    CHECK(trial.check("flash2", NumberFormat::fp32).passed);
    trial.target.reference.o(3, 1) += 0.01;
    CHECK(!trial.check("flash2", NumberFormat::fp32).passed);
  }

  TEST_CASE("NaN agrees with NaN and with nothing else") {
    Trial trial;
    trial.target.reference.o(4, 0) = kNaN;
    const VerifyCheck check = trial.check();
    CHECK(!check.passed);
    CHECK(check.share == kInfinity);
    Trial of_lse;
    of_lse.target.reference.lse(4) = kNaN;
    CHECK(!of_lse.check().passed);
    // A computed NaN against a number.
    Trial computed;
    computed.inputs.q.elements[0] = kNaN;
    CHECK(!computed.check().passed);
    computed.target.reference.o.row(0).setConstant(kNaN);
    computed.target.reference.lse(0) = kNaN;
    CHECK(computed.check().passed);
  }

  TEST_CASE("infinities agree only with their like") {
    Trial trial;
    trial.target.reference.lse(4) = -kInfinity;
    CHECK(!trial.check().passed);
    trial.target.reference.lse(4) = kInfinity;
    CHECK(!trial.check().passed);
    // Queries that see no key: O = 0 and lse = -inf on both sides.
    Problem problem =
        testing::one_head({.seqlen_q = 5, .seqlen_kv = 2, .head_dim = 4, .head_dim_v = 3});
    problem.window_right = 0;
    const OwnedInputs inputs = normal_inputs(problem, 1);
    const NumericTarget target =
        numeric_target("unseen", problem, kTile, inputs.view(), sequence(problem, 0), 0, serial);
    CHECK(target.reference.lse(0) == -kInfinity);
    CHECK(check_numeric(target, algorithm_named("flash2"), NumberFormat::fp64).passed);
  }

  TEST_CASE("an infinite allowance passes nothing that differs") {
    Trial trial;
    trial.target.reference_bound.o(2, 2) = kInfinity;
    trial.target.reference.o(2, 2) += 1e-3;
    const VerifyCheck check = trial.check();
    CHECK(!check.passed);
    CHECK(check.share == kInfinity);
    CHECK(check.allowed_difference == kInfinity);
    Trial of_nan;
    of_nan.target.reference_bound.o(2, 2) = kNaN;
    of_nan.target.reference.o(2, 2) += 1e-3;
    CHECK(!of_nan.check().passed);
  }

  TEST_CASE("a program that computes something else fails") {
    const Trial trial;
    Trial other;
    other.problem.softcap = 1;  // the tiles see another problem than the reference did
    CHECK(!other.check().passed);
    CHECK(trial.check().passed);
  }

  TEST_CASE("counts that differ by one element fail and name it") {
    // One query of one column: storing O twice writes one element more.
    Problem problem =
        testing::one_head({.seqlen_q = 1, .seqlen_kv = 3, .head_dim = 1, .head_dim_v = 1});
    REQUIRE(find_op(flash2_program().body, Op::store) != nullptr);
    const VerifyCheck check = check_closed_form("one", kStoringTwice, problem, kTile);
    CHECK(!check.passed);
    CHECK(check.quantity == "o written");
    CHECK(check.worst_difference == 1);
    CHECK(check.allowed_difference == 0);
    CHECK(check.share == kInfinity);
    CHECK(check_closed_form("one", algorithm_named("flash2"), problem, kTile).passed);
    // The log and the count machine run the same program and agree.
    CHECK(check_record("one", kStoringTwice, problem, kTile).passed);
  }

  TEST_CASE("another algorithm's closed form fails") {
    const Problem problem = Trial().problem;
    CHECK(!check_closed_form("misnamed", kMisnamed, problem, kTile).passed);
    for (const Algorithm& algorithm : algorithms()) {
      CAPTURE(std::string(algorithm.name));
      const VerifyCheck form = check_closed_form("honest", algorithm, problem, kTile);
      CHECK(form.passed);
      CHECK(form.share == 0);
      CHECK(form.worst_difference == 0);
      CHECK(check_record("honest", algorithm, problem, kTile).passed);
    }
  }

  TEST_CASE("the worse of two checks fails if either does and shows the larger share") {
    VerifyCheck near;
    near.algorithm = "near";
    near.share = 0.9;
    near.passed = true;
    VerifyCheck far = near;
    far.algorithm = "far";
    far.share = 0.1;
    CHECK(worse(near, far).algorithm == "near");
    CHECK(worse(far, near).algorithm == "near");
    CHECK(worse(far, near).passed);
    VerifyCheck failed = far;
    failed.algorithm = "failed";
    failed.share = kInfinity;
    failed.passed = false;
    for (const VerifyCheck& both : {worse(near, failed), worse(failed, near)}) {
      CHECK(both.algorithm == "failed");
      CHECK(!both.passed);
    }
    CHECK(!worse(failed, failed).passed);
    CHECK(worse(near, near).share == 0.9);
  }
}

}  // namespace
}  // namespace flashbound
