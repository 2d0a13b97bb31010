#include "experiments/sweep_line.hpp"

#include <charconv>
#include <string_view>

namespace flashbound {

bool next_line(std::istream& in, std::string& line) {
  line.clear();
  return static_cast<bool>(std::getline(in, line)) && !in.eof();
}

std::optional<Index> point_of_line(const std::string& line) {
  // Within a string of JSON a quotation mark has a backslash before it.
  constexpr std::string_view kKey = ", \"point\": ";
  const std::size_t at = line.find(kKey);
  if (at == std::string::npos || line.front() != '{' || line.back() != '}') return std::nullopt;
  Index point = -1;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + at + kKey.size(), end, point);
  if (error != std::errc{} || point < 0 || (*stop != ',' && *stop != '}')) return std::nullopt;
  return point;
}

}  // namespace flashbound
