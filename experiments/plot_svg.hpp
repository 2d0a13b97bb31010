// A chart as self-contained SVG text: lines or stairs on linear or logarithmic axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace flashbound {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points{};  // by ascending x; finite, above 0 on log axes
  bool stairs = false;                              // y holds from a point to the next one's x
  bool dashed = false;
};

struct PlotAxis {
  std::string label;  // with its unit
  bool log = true;    // base 2, ticks at powers of 4 or more
  bool bytes = true;  // ticks read 64 KiB, 2 GiB
};

struct Plot {
  std::string title;
  PlotAxis x{};
  PlotAxis y{};
  std::vector<PlotSeries> series{};
};

// The same text for the same plot, whatever the machine's locale. All names are escaped.
std::string plot_svg(const Plot& plot);

}  // namespace flashbound
