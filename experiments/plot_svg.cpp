#include "experiments/plot_svg.hpp"

#include "experiments/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

namespace flashbound {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 540;
constexpr double kLeft = 110;
constexpr double kRight = 230;  // room for the legend
constexpr double kTop = 50;
constexpr double kBottom = 70;

// Okabe and Ito's palette, told apart by the colour-blind; the eighth is black.
constexpr std::array<std::string_view, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#7a6a00", "#000000"};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// From data to one side of the picture.
class Scale {
 public:
  Scale(const PlotAxis& axis, Range range, double begin, double end)
      : axis_(axis), begin_(begin), end_(end) {
    low_ = place(range.low);
    high_ = place(range.high);
    if (high_ - low_ < 1e-9) {
      low_ -= 0.5;
      high_ += 0.5;
    }
    if (!axis.log) low_ = 0;
  }
  double at(double value) const {
    return begin_ + (place(value) - low_) / (high_ - low_) * (end_ - begin_);
  }
  std::vector<double> ticks() const {
    std::vector<double> values;
    constexpr double kTicks = 9;
    if (axis_.log) {
      const double step = std::max(1.0, std::ceil((high_ - low_) / kTicks));
      const auto first = static_cast<int>(std::ceil(low_ / step));
      const auto last = static_cast<int>(std::floor((high_ + 1e-9) / step));
      for (int tick = first; tick <= last; ++tick) values.push_back(std::exp2(tick * step));
      return values;
    }
    const double raw = (high_ - low_) / kTicks;
    const double unit = axis_.bytes ? std::exp2(std::ceil(std::log2(raw)))
                                    : std::pow(10.0, std::ceil(std::log10(raw)));
    const auto last = static_cast<int>(std::floor(high_ / unit + 1e-9));
    for (int tick = 0; tick <= last; ++tick) values.push_back(tick * unit);
    return values;
  }

 private:
  double place(double value) const { return axis_.log ? std::log2(value) : value; }

  const PlotAxis& axis_;
  double begin_, end_;
  double low_ = 0;
  double high_ = 1;
};

std::string tick_text(double value, bool bytes) {
  if (!bytes) return fmt::format("{:g}", value);
  constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:g} {}", value, kUnits[unit]);
}

std::string text_at(double x, double y, std::string_view anchor, const std::string& text,
                    std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, escaped(text));
}

std::string axes(const Plot& plot, const Scale& x, const Scale& y) {
  std::string svg;
  const double bottom = kHeight - kBottom;
  const double right = kWidth - kRight;
  for (const double value : x.ticks()) {
    const double at = x.at(value);
    svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", at, kTop, bottom);
    svg += text_at(at, bottom + 20, "middle", tick_text(value, plot.x.bytes));
  }
  for (const double value : y.ticks()) {
    const double at = y.at(value);
    svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, at, right);
    svg += text_at(kLeft - 8, at + 4, "end", tick_text(value, plot.y.bytes));
  }
  svg += fmt::format("<path class=\"frame\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", kLeft, kTop,
                     bottom, right);
  svg += text_at((kLeft + right) / 2, kHeight - 18, "middle", plot.x.label);
  const double middle = (kTop + bottom) / 2;
  svg += text_at(22, middle, "middle", plot.y.label,
                 fmt::format(" transform=\"rotate(-90 22 {:.1f})\"", middle));
  return svg;
}

std::string path_of(const PlotSeries& series, const Scale& x, const Scale& y) {
  std::string path;
  for (std::size_t p = 0; p < series.points.size(); ++p) {
    const auto& [px, py] = series.points[p];
    if (p == 0) {
      path += fmt::format("M{:.1f} {:.1f}", x.at(px), y.at(py));
    } else if (series.stairs) {
      path += fmt::format("H{:.1f}V{:.1f}", x.at(px), y.at(py));
    } else {
      path += fmt::format("L{:.1f} {:.1f}", x.at(px), y.at(py));
    }
  }
  if (series.stairs && !series.points.empty()) path += fmt::format("H{:.1f}", kWidth - kRight);
  return path;
}

}  // namespace

std::string plot_svg(const Plot& plot) {
  Range x_range;
  Range y_range;
  for (const PlotSeries& series : plot.series) {
    for (const auto& point : series.points) {
      x_range.include(point.first);
      y_range.include(point.second);
    }
  }
  const bool nothing = x_range.low > x_range.high;
  if (nothing) {
    x_range.include(1);
    y_range.include(1);
  }
  const Scale x(plot.x, x_range, kLeft, kWidth - kRight);
  const Scale y(plot.y, y_range, kHeight - kBottom, kTop);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:g} {:g}\" role=\"img\" "
      "font-family=\"system-ui,sans-serif\" font-size=\"13\">\n<title>{}</title>\n"
      "<style>.grid{{stroke:#d8dee4}}.frame{{stroke:#1b1f24;fill:none}}"
      ".line{{fill:none;stroke-width:2}}</style>\n"
      "<rect width=\"{:g}\" height=\"{:g}\" fill=\"#fff\"/>\n",
      kWidth, kHeight, escaped(plot.title), kWidth, kHeight);
  svg += text_at(kLeft, 28, "start", plot.title, " font-size=\"16\" font-weight=\"600\"");
  svg += axes(plot, x, y);
  for (std::size_t s = 0; s < plot.series.size(); ++s) {
    const PlotSeries& series = plot.series[s];
    const std::string_view colour = kColours[s % kColours.size()];
    // A second round of the palette is told apart by its dashes.
    const std::string_view dashes = series.dashed          ? " stroke-dasharray=\"3 4\""
                                    : s >= kColours.size() ? " stroke-dasharray=\"9 3\""
                                                           : "";
    svg += fmt::format("<path class=\"line\" stroke=\"{}\"{} d=\"{}\"><title>{}</title></path>\n",
                       colour, dashes, path_of(series, x, y), escaped(series.name));
    const double row = kTop + 8 + 22 * static_cast<double>(s);
    const double column = kWidth - kRight + 18;
    svg += fmt::format("<path class=\"line\" stroke=\"{}\"{} d=\"M{:.1f} {:.1f}h26\"/>\n", colour,
                       dashes, column, row);
    svg += text_at(column + 34, row + 4, "start", series.name);
  }
  return svg + "</svg>\n";
}

}  // namespace flashbound
