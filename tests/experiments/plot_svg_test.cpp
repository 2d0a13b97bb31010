#include "experiments/plot_svg.hpp"

#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <string>

namespace flashbound {
namespace {

using testing::contains;

Plot plot_of(std::vector<std::pair<double, double>> points, bool log) {
  return {.title = "T",
          .x = {.label = "x (bytes)", .log = log},
          .y = {.label = "y (bytes)", .log = log},
          .series = {{.name = "s", .points = std::move(points), .stairs = true}}};
}

}  // namespace

TEST_SUITE("experiments.plot_svg") {
  TEST_CASE("axes carry their labels and units") {
    const std::string svg = plot_svg(plot_of({{1024, 1 << 20}, {1 << 20, 1 << 30}}, true));
    for (const char* part :
         {">x (bytes)<", ">y (bytes)<", ">1 KiB<", ">1 MiB<", ">1 GiB<", ">s<"}) {
      CAPTURE(part);
      CHECK(contains(svg, part));
    }
  }

  TEST_CASE("linear axes begin at zero") {
    const std::string svg = plot_svg(plot_of({{1 << 20, 5}, {1 << 22, 900}}, false));
    CHECK(contains(svg, ">0 B<"));
    CHECK(contains(svg, ">1 MiB<"));
  }

  TEST_CASE("stairs go along before they go up or down") {
    const std::string svg = plot_svg(plot_of({{1, 1}, {2, 2}, {4, 4}}, true));
    const std::size_t path = svg.find("d=\"", svg.find("class=\"line\""));
    REQUIRE(path != std::string::npos);
    const std::string data = svg.substr(path, svg.find('"', path + 3) - path);
    CHECK(data == "d=\"M110.0 470.0H420.0V260.0H730.0V50.0H730.0");
  }

  TEST_CASE("names are escaped and nothing is drawn of nothing") {
    Plot plot = plot_of({}, true);
    plot.title = "<script>&\"'";
    plot.series[0].name = "a<b";
    const std::string svg = plot_svg(plot);
    CHECK(contains(svg, "&lt;script&gt;&amp;&quot;&#39;"));
    CHECK(contains(svg, "a&lt;b"));
    CHECK_FALSE(contains(svg, "<script"));
    CHECK_FALSE(contains(svg, "nan"));
    CHECK_FALSE(contains(svg, "inf"));
  }

  TEST_CASE("one point is enough") {
    const std::string svg = plot_svg(plot_of({{64, 64}}, true));
    CHECK_FALSE(contains(svg, "nan"));
  }
}

}  // namespace flashbound
