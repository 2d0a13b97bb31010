#include "experiments/sweep_plan.hpp"

#include "experiments/sweep_line.hpp"
#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace flashbound {
namespace {

using testing::contains;
using testing::rejection;
using Texts = std::vector<std::string>;

SweepPlan plan_of(Texts words) {
  words.insert(words.begin(), {"--seqlen", "64"});
  return sweep_plan(parse_options(*verb_named("sweep"), words));
}

}  // namespace

TEST_SUITE("experiments.sweep_plan") {
  TEST_CASE("points number all combinations and the first option of the table varies slowest") {
    const SweepPlan plan =
        plan_of({"--block-kv", "8,16", "--algorithm", "flash1,flash2", "--head-dim", "8:32:x2"});
    REQUIRE(plan.points == 12);
    Options options = plan.base;
    Texts seen;
    for (Index point = 0; point < plan.points; ++point) {
      set_point(plan, point, options);
      seen.push_back(options.text("algorithm") + "/" + options.text("head-dim") + "/" +
                     options.text("block-kv"));
    }
    CHECK(seen.front() == "flash1/8/8");
    CHECK(seen[1] == "flash1/8/16");
    CHECK(seen[2] == "flash1/16/8");
    CHECK(seen[6] == "flash2/8/8");
    CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == 12);
  }

  TEST_CASE("shards share all points out and none twice") {
    for (const Index count : {1, 2, 3, 7, 12, 20}) {
      std::set<Index> points;
      Index own = 0;
      for (Index index = 1; index <= count; ++index) {
        const SweepPlan plan = plan_of({"--block-q", "1:12:+1", "--shard",
                                        std::to_string(index) + "/" + std::to_string(count)});
        own += plan.own_points();
        for (Index n = 0; n < plan.own_points(); ++n) points.insert(plan.own_point(n));
      }
      CHECK(own == 12);
      CHECK(points.size() == 12);
      CHECK((*points.begin() == 0 && *points.rbegin() == 11));
    }
  }

  TEST_CASE("equal sweeps have one configuration however they are run") {
    const auto config = [](const Texts& more) {
      Texts words{"--block-q", "8,16"};
      words.insert(words.end(), more.begin(), more.end());
      return sweep_config_json(plan_of(words));
    };
    CHECK(config({}) == config({"--threads", "2", "--quiet", "--shard", "2/3"}));
    CHECK(config({}) == config({"--output", "a.jsonl", "--force"}));
    CHECK(config({}) != config({"--block-kv", "32"}));
    CHECK(contains(config({}), "\"block-q\": [\"8\", \"16\"]"));
  }

  TEST_CASE("what a verb does not take is refused") {
    CHECK(contains(rejection([] {
                     plan_of({"--of", "tile", "--sram", "1KiB", "--block-q", "8"});
                   }),
                   "block-q = 8: must be absent"));
    CHECK(contains(rejection([] { plan_of({"--of", "numerics"}); }), "of = numerics"));
  }
}

TEST_SUITE("experiments.sweep_line") {
  TEST_CASE("only whole lines are read") {
    std::istringstream in("one\ntwo\nthr");
    std::string line;
    CHECK(next_line(in, line));
    CHECK(line == "one");
    CHECK(next_line(in, line));
    CHECK(line == "two");
    CHECK_FALSE(next_line(in, line));
  }

  TEST_CASE("a row says its point and nothing else does") {
    CHECK(point_of_line(R"({"status": "ok", "point": 17, "tensors": {}})") == 17);
    CHECK(point_of_line(R"({"status": "ok", "point": 0})") == 0);
    for (const char* line :
         {"", "{}", R"({"point": 1})", R"({"a": 1, "point": })", R"({"a": 1, "point": -3})",
          R"({"a": 1, "point": 12)", R"({"a": 1, "point": 99999999999999999999})",
          R"({"reason": "x, \"point\": 4,"})", R"({"complete": true, "points": 4})"}) {
      CAPTURE(line);
      CHECK_FALSE(point_of_line(line).has_value());
    }
  }
}

}  // namespace flashbound
