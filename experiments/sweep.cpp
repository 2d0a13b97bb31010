#include "experiments/sweep.hpp"

#include "core/errors.hpp"

#include <string>
#include <utility>

namespace flashbound {
namespace {

constexpr Index kPointsMax = 65536;

void require_few(const std::string& field, const std::string& text, Int128 count) {
  if (count <= kPointsMax) return;
  reject(field, text, "part of at most " + std::to_string(kPointsMax) + " points");
}

// LOW:HIGH:xFACTOR
std::vector<std::string> range_values(const std::string& field, const std::string& text) {
  const std::string allowed = "LOW:HIGH:xFACTOR such as 128:8192:x2";
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (second == std::string::npos || second + 1 >= text.size() || text[second + 1] != 'x') {
    reject(field, text, allowed);
  }
  const Index low = parse_integer(field, text.substr(0, first));
  const Index high = parse_integer(field, text.substr(first + 1, second - first - 1));
  const Index factor = parse_integer(field, text.substr(second + 2));
  if (low < 1 || high < low || factor < 2) {
    reject(field, text, allowed + ", 1 <= LOW <= HIGH and FACTOR >= 2");
  }
  std::vector<std::string> values;
  for (Int128 value = low; value <= high; value *= factor) values.push_back(to_decimal(value));
  return values;
}

}  // namespace

std::vector<std::string> sweep_values(const std::string& field, const std::string& text,
                                      bool whole_numbers) {
  std::vector<std::string> values;
  for (std::string& part : split_commas(text)) {
    if (whole_numbers && part.find(':') != std::string::npos) {
      for (std::string& value : range_values(field, part)) values.push_back(std::move(value));
    } else {
      values.push_back(std::move(part));
    }
  }
  require_few(field, text, static_cast<Int128>(values.size()));
  return values;
}

std::vector<Options> sweep_points(const Options& options) {
  std::vector<Options> points{options};
  for (const OptionText& option : option_texts()) {
    const std::string name(option.name);
    if ((option.swept & options.verb().verb) == 0 || !options.given(name)) continue;
    const std::string text = options.text(name);
    const std::vector<std::string> values = sweep_values(name, text, option.metavar == "N");
    if (values.size() == 1 && values.front() == text) continue;
    require_few(name, text,
                static_cast<Int128>(points.size()) * static_cast<Int128>(values.size()));
    std::vector<Options> product;
    for (const Options& point : points) {
      for (const std::string& value : values) {
        product.push_back(point);
        product.back().set(name, {value, options.values().at(name).origin});
      }
    }
    points = std::move(product);
  }
  return points;
}

}  // namespace flashbound
