// Every failure case of tests/core/attention_cases.hpp, run by every program tile by tile.
#include "tests/core/attention_cases.hpp"

#include "core/numeric.hpp"
#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

namespace flashbound {
namespace {

// Small enough to have many blocks in most cases, ragged in nearly all.
constexpr Tile kTile{.block_q = 24, .block_kv = 40, .panel = 8, .num_splits = 3};

// lse as the program keeps it. None: an empty tensor.
void keep_lse(const NumericRun& run, const Sequence& at, Index head, Tensor<double>& lse) {
  for (Index r = 0; r < at.seqlen_q; ++r) {
    const std::optional<double> value = run.lse(r);
    if (!value) {
      lse.elements.clear();
      return;
    }
    lse.view()(at.batch, head, at.q_begin + r, 0) = *value;
  }
}

Attention run_all(const Program& program, const Problem& p, const Inputs& inputs) {
  Attention result{Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}),
                   Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, 1})};
  for (Index s = 0; s < sequence_count(p); ++s) {
    const Sequence at = sequence(p, s);
    for (Index head = 0; head < p.num_heads_q; ++head) {
      const NumericRun run = run_numeric(program, p, kTile, inputs, at, head, NumberFormat::fp64);
      const HeadTensor& o = *run.find("o");
      for (Index r = 0; r < o.rows; ++r) {
        for (Index c = 0; c < o.cols; ++c) {
          result.o.view()(at.batch, head, at.q_begin + r, c) = o(r, c);
        }
      }
      if (!result.lse.elements.empty()) keep_lse(run, at, head, result.lse);
    }
  }
  return result;
}

testing::Subject subject(const Program& program) {
  return {[&program](const Problem& p, const Inputs& in) { return run_all(program, p, in); },
          [](const HeadConditions& conditions, const Sequence&) {
            const Schedule schedule{conditions.shape, {}, kTile};
            return error_bound(conditions, program_rounding(NumberFormat::fp64, schedule));
          }};
}

void check(const char* name) {
  const Program program = algorithm_named(name).program();
  Index cases = 0;
  for (const testing::CaseEntry& entry : testing::attention_cases()) {
    for (const testing::AttentionCase& c : entry.build()) {
      ++cases;
      CAPTURE(entry.id);
      CAPTURE(entry.title);
      for (const std::string& failure : failures(c, subject(program))) FAIL_CHECK(failure);
    }
  }
  CHECK(cases > 50);
}

}  // namespace

// One test an algorithm, so that they run side by side; the list below must be whole.
TEST_SUITE("cross.attention_cases") {
  TEST_CASE("standard gives the right value of every failure case") { check("standard"); }
  TEST_CASE("standard-tiled gives the right value of every failure case") {
    check("standard-tiled");
  }
  TEST_CASE("rabe-staats gives the right value of every failure case") { check("rabe-staats"); }
  TEST_CASE("flash1 gives the right value of every failure case") { check("flash1"); }
  TEST_CASE("flash1-charged-start gives the right value of every failure case") {
    check("flash1-charged-start");
  }
  TEST_CASE("flash1-skip-first-read gives the right value of every failure case") {
    check("flash1-skip-first-read");
  }
  TEST_CASE("flash2 gives the right value of every failure case") { check("flash2"); }
  TEST_CASE("split-kv gives the right value of every failure case") { check("split-kv"); }
  TEST_CASE("small-cache gives the right value of every failure case") { check("small-cache"); }
  TEST_CASE("every algorithm has its test above") { CHECK(algorithms(Pass::forward).size() == 9); }
}

}  // namespace flashbound
