// exact() against long arithmetic, and against the bound that the reference keeps.
#include "core/exact.hpp"

#include "core/error_bound.hpp"
#include "core/errors.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/attention_cases.hpp"
#include "tests/core/exact_oracle.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/core/same_numbers.hpp"
#include "tests/core/within_bound.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

TEST_SUITE_BEGIN("core.exact");

namespace flashbound {
namespace {

using testing::one_head;
using testing::same_numbers;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("exact attention is the definition in long arithmetic rounded once") {
  for (std::uint64_t seed = 2000; seed < 2200; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const std::string text = testing::describe(random);
    CAPTURE(text);
    const OwnedInputs inputs = normal_inputs(random.problem, seed);
    const ExactAttention result = exact(random.problem, inputs.view());
    const auto expected = testing::long_attention(random.problem, inputs.view(), 300);
    REQUIRE(result.undecided_o.empty());
    REQUIRE(result.undecided_lse.empty());
    REQUIRE(same_numbers(result.o.elements, expected.o.elements));
    REQUIRE(same_numbers(result.lse.elements, expected.lse.elements));
  }
}

// The largest error of the reference, in its bounds and in units of the last place.
struct Worst {
  testing::WorstRatio bound;
  double ulps = 0;

  void add(double actual, double expected, double allowed) {
    bound.add(static_cast<long double>(actual), static_cast<long double>(expected),
              static_cast<long double>(allowed));
    if (!std::isfinite(expected) || actual == expected) return;
    const double ulp = std::nextafter(std::abs(expected), kInfinity) - std::abs(expected);
    ulps = std::max(ulps, std::abs(actual - expected) / ulp);
  }
};

void compare_reference(const Problem& p, const Inputs& in, Worst& worst) {
  for (Index s = 0; s < sequence_count(p); ++s) {
    const Sequence at = sequence(p, s);
    for (Index h = 0; h < p.num_heads_q; ++h) {
      const ErrorBound bound = error_bound(head_conditions(p, in, at, h), reference_rounding());
      const HeadOutput actual = reference_head(p, in, at, h);
      const ExactHead expected = exact_head(p, in, at, h);
      for (Index r = 0; r < at.seqlen_q; ++r) {
        worst.add(actual.lse(r), expected.lse(r), bound.lse(r));
        for (Index c = 0; c < p.head_dim_v; ++c) {
          worst.add(actual.o(r, c), expected.o(r, c), bound.o(r, c));
        }
      }
    }
  }
}

TEST_CASE("the reference lies within its bound of the exact result") {
  Worst worst;
  for (std::uint64_t seed = 3000; seed < 3200; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const std::string text = testing::describe(random);
    CAPTURE(text);
    const OwnedInputs inputs = normal_inputs(random.problem, seed);
    compare_reference(random.problem, inputs.view(), worst);
    REQUIRE(worst.bound.worst() <= 1);
  }
  MESSAGE("the reference errs by " << worst.ulps << " ulp and " << worst.bound.worst()
                                   << " of its bound at most, in " << worst.bound.count()
                                   << " elements");
}

TEST_CASE("every failure case has its right values exactly") {
  const testing::Subject subject{[](const Problem& p, const Inputs& in) {
                                   const ExactAttention result = exact(p, in);
                                   CHECK(result.undecided_o.empty());
                                   CHECK(result.undecided_lse.empty());
                                   return Attention{result.o, result.lse};
                                 },
                                 testing::reference_subject().bound};
  for (const testing::CaseEntry& entry : testing::attention_cases()) {
    CAPTURE(entry.id);
    CAPTURE(entry.title);
    for (const testing::AttentionCase& c : entry.build()) {
      for (const std::string& failure : failures(c, subject)) FAIL_CHECK(failure);
    }
  }
}

TEST_CASE("exact_head gives the rows of its head in exact") {
  for (std::uint64_t seed = 2024; seed < 2044; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const Problem& p = random.problem;
    const OwnedInputs inputs = normal_inputs(p, seed);
    const ExactAttention all = exact(p, inputs.view());
    Index different = 0;
    for (Index s = 0; s < sequence_count(p); ++s) {
      const Sequence at = sequence(p, s);
      for (Index h = 0; h < p.num_heads_q; ++h) {
        const ExactHead head = exact_head(p, inputs.view(), at, h);
        for (Index r = 0; r < at.seqlen_q; ++r) {
          different += head.lse(r) != all.lse.view()(at.batch, h, at.q_begin + r, 0);
          for (Index c = 0; c < p.head_dim_v; ++c) {
            different += head.o(r, c) != all.o.view()(at.batch, h, at.q_begin + r, c);
          }
        }
      }
    }
    CHECK(different == 0);
  }
}

TEST_CASE("empty tensors give an empty or a neutral exact output") {
  for (const Index seqlen_q : {0, 3}) {
    for (const Index seqlen_kv : {0, 3}) {
      CAPTURE(seqlen_q);
      CAPTURE(seqlen_kv);
      const Problem p = one_head({seqlen_q, seqlen_kv, 2, 2});
      const OwnedInputs inputs = normal_inputs(p, 1);
      const ExactAttention result = exact(p, inputs.view());
      CHECK(result.o.shape == std::array<Index, 4>{1, 1, seqlen_q, 2});
      CHECK(result.lse.shape == std::array<Index, 4>{1, 1, seqlen_q, 1});
      if (seqlen_kv > 0) continue;
      for (const double o : result.o.elements) CHECK(o == 0);
      for (const double lse : result.lse.elements) CHECK(lse == -kInfinity);
    }
  }
}

TEST_CASE("an option out of range is named") {
  const Problem p = one_head({1, 1, 1, 1});
  const OwnedInputs inputs = normal_inputs(p, 1);
  const auto message = [&](const ExactOptions& options) -> std::string {
    try {
      exact(p, inputs.view(), options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message({}) == "accepted");
  CHECK(message({.first_precision = 63}) == "first_precision = 63: must be at least 64");
  CHECK(message({.first_precision = 128, .precision_cap = 127}) ==
        "precision_cap = 127: must be at least first_precision = 128");
}

// Under a suite of its own, which the thread sanitizer runs.
TEST_CASE("exact results are the same whatever runs the parts" * doctest::test_suite("threads")) {
  Problem p = one_head({70, 45, 4, 3});
  p.num_heads_q = 2;
  p.window_right = 3;
  OwnedInputs inputs = normal_inputs(p, 23);
  // Values that cancel where keys are equal leave something to decide.
  for (std::size_t n = 0; n < inputs.k.elements.size(); ++n) {
    inputs.k.elements[n] = inputs.k.elements[n % 8];
  }
  const ExactAttention expected = exact(p, inputs.view());
  const ParallelFor backwards = [](Index count, const std::function<void(Index)>& body) {
    for (Index part = count; part-- > 0;) body(part);
  };
  for (const ParallelFor& parallel_for : {backwards, testing::three_threads()}) {
    const ExactAttention actual = exact(p, inputs.view(), {}, parallel_for);
    CHECK(actual.o.elements == expected.o.elements);
    CHECK(actual.lse.elements == expected.lse.elements);
    CHECK(actual.precision == expected.precision);
  }
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
