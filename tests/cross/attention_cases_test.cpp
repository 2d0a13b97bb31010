// Every failure case of tests/core/attention_cases.hpp, run by every program tile by tile.
#include "tests/core/attention_cases.hpp"

#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "tests/cross/whole_output.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

namespace flashbound {
namespace {

// Small enough to have many blocks in most cases, ragged in nearly all.
constexpr Tile kTile{.block_q = 24, .block_kv = 40, .panel = 8, .num_splits = 3};

// lse as the program keeps it. None: an empty tensor.
testing::Subject subject(const Program& program) {
  return {[&program](const Problem& p, const Inputs& in) {
            return testing::whole_output(program, p, kTile, in, uniform_recipe(NumberFormat::fp64));
          },
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
  TEST_CASE("small-cache-spill-both gives the right value of every failure case") {
    check("small-cache-spill-both");
  }
  TEST_CASE("every algorithm has its test above") { CHECK(algorithms(Pass::forward).size() == 10); }
}

}  // namespace flashbound
