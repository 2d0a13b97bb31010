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

// LOW:HIGH:xFACTOR or LOW:HIGH:+STEP
std::vector<std::string> range_values(const std::string& field, const std::string& text,
                                      RangeOf range_of) {
  const std::string allowed = "LOW:HIGH:xFACTOR or LOW:HIGH:+STEP such as 128:8192:x2";
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  const char kind =
      second == std::string::npos || second + 1 >= text.size() ? ' ' : text[second + 1];
  if (kind != 'x' && kind != '+') reject(field, text, allowed);
  const auto number = [&](const std::string& part) {
    return range_of == RangeOf::sizes ? parse_bytes(field, part).value()
                                      : Int128{parse_integer(field, part)};
  };
  const Int128 low = number(text.substr(0, first));
  const Int128 high = number(text.substr(first + 1, second - first - 1));
  const bool grows = kind == 'x';
  const Int128 step = grows ? Int128{parse_integer(field, text.substr(second + 2))}
                            : number(text.substr(second + 2));
  const Int128 least = grows ? 1 : 0;
  if (low < least || high < low || step <= least) {
    reject(field, text, allowed + ", LOW <= HIGH, FACTOR >= 2 from 1 on, STEP >= 1 from 0 on");
  }
  std::vector<std::string> values;
  for (Int128 value = low; value <= high; value = grows ? value * step : value + step) {
    values.push_back(to_decimal(value));
    require_few(field, text, static_cast<Int128>(values.size()));
  }
  return values;
}

}  // namespace

RangeOf ranges_of(const OptionText& option) {
  if (option.metavar == "N") return RangeOf::whole_numbers;
  return option.metavar == "SIZE" ? RangeOf::sizes : RangeOf::nothing;
}

std::vector<std::string> sweep_values(const std::string& field, const std::string& text,
                                      RangeOf range_of) {
  std::vector<std::string> values;
  for (std::string& part : split_commas(text)) {
    if (range_of != RangeOf::nothing && part.find(':') != std::string::npos) {
      for (std::string& value : range_values(field, part, range_of)) {
        values.push_back(std::move(value));
      }
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
    const std::vector<std::string> values = sweep_values(name, text, ranges_of(option));
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
