// Sweeps: what a text lists, and every combination once, in the order of the option table.
#include "experiments/sweep.hpp"

#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace flashbound {
namespace {

using testing::contains;
using testing::rejection;
using Texts = std::vector<std::string>;

Options numerics(const Texts& words) { return parse_options(*verb_named("numerics"), words); }

// The points as "seqlen/recipe/block-q".
Texts points_of(const Texts& words) {
  Texts points;
  for (const Options& point : sweep_points(numerics(words))) {
    points.push_back(point.text("seqlen") + "/" + point.text("recipe") + "/" +
                     point.text("block-q"));
  }
  return points;
}

TEST_SUITE("experiments.sweep") {
  TEST_CASE("a text is a list of values and of geometric ranges") {
    CHECK(sweep_values("n", "64", RangeOf::whole_numbers) == Texts{"64"});
    CHECK(sweep_values("n", "64,128", RangeOf::whole_numbers) == Texts{"64", "128"});
    CHECK(sweep_values("n", "128:1024:x2", RangeOf::whole_numbers) ==
          Texts{"128", "256", "512", "1024"});
    CHECK(sweep_values("n", "128:1000:x2", RangeOf::whole_numbers) == Texts{"128", "256", "512"});
    CHECK(sweep_values("n", "5:5:x9", RangeOf::whole_numbers) == Texts{"5"});
    CHECK(sweep_values("n", "0:35:+10", RangeOf::whole_numbers) == Texts{"0", "10", "20", "30"});
    CHECK(sweep_values("m", "1KiB:4KiB:x2,9", RangeOf::sizes) ==
          Texts{"1024", "2048", "4096", "9"});
    CHECK(sweep_values("m", "1KiB:2KiB:+512", RangeOf::sizes) == Texts{"1024", "1536", "2048"});
    CHECK(sweep_values("n", "3,1:100:x10,7", RangeOf::whole_numbers) ==
          Texts{"3", "1", "10", "100", "7"});
    CHECK(sweep_values("n", "1:9223372036854775807:x4000000000", RangeOf::whole_numbers).size() ==
          2);
    CHECK(sweep_values("n", "a:b,c", RangeOf::nothing) == Texts{"a:b", "c"});
  }

  TEST_CASE("ranges that never end or go nowhere are refused with their field") {
    for (const char* text : {"1:8",     "1:8:2",
                             "1:8:x",   "1:8:x1",
                             "1:8:x0",  "1:8:x-2",
                             "0:8:x2",  "8:1:x2",
                             ":8:x2",   "1::x2",
                             "1:8:x2:", "-8:8:x2",
                             "a:8:x2",  "1:9223372036854775808:x2",
                             ":",       "::",
                             "::x",     "1:8:+0",
                             "1:8:+-1", "0:9000000:+1"}) {
      CAPTURE(std::string(text));
      CHECK(contains(rejection([&] { sweep_values("seqlen", text, RangeOf::whole_numbers); }),
                     "seqlen = "));
    }
  }

  TEST_CASE("points are every combination and the first option of the table varies slowest") {
    CHECK(points_of({"--block-q", "16,32", "--recipe", "fp32,fp64", "--seqlen", "4:8:x2"}) ==
          Texts{"4/fp32/16", "4/fp32/32", "4/fp64/16", "4/fp64/32",  //
                "8/fp32/16", "8/fp32/32", "8/fp64/16", "8/fp64/32"});
    CHECK(points_of({"--seqlen", "4"}) == Texts{"4/flash2-bf16/64"});
  }

  TEST_CASE("what is not swept stays as it was given") {
    const auto points = sweep_points(numerics({"--seqlen", "4,8", "--sink", "1,2"}));
    REQUIRE(points.size() == 2);
    CHECK(points[1].text("sink") == "1,2");
    CHECK(points[1].given("seqlen"));
    CHECK(!points[1].given("block-q"));
  }

  TEST_CASE("more points than anyone waits for are refused before they are made") {
    std::string many = "1";
    for (int i = 2; i <= 300; ++i) many += "," + std::to_string(i);
    CHECK(contains(rejection([&] {
                     sweep_points(numerics({"--seqlen", many, "--block-q", many}));
                   }),
                   "65536 points"));
  }

  TEST_CASE("a verb that sweeps nothing has one point") {
    const Texts words{"--seqlen", "4,8"};
    const auto points = sweep_points(parse_options(*verb_named("count"), words));
    REQUIRE(points.size() == 1);
    CHECK(points[0].text("seqlen") == "4,8");
  }
}

}  // namespace
}  // namespace flashbound
