// Texts of option values become numbers, exactly or not at all.
#include "core/errors.hpp"
#include "experiments/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string_view>

namespace flashbound {
namespace {

struct SizeUnit {
  std::string_view suffix;
  Index bytes;
};
constexpr std::array<SizeUnit, 9> kSizeUnits{{{"KiB", Index{1} << 10},
                                              {"MiB", Index{1} << 20},
                                              {"GiB", Index{1} << 30},
                                              {"kB", 1000},
                                              {"KB", 1000},
                                              {"MB", 1000000},
                                              {"GB", 1000000000},
                                              {"B", 1},
                                              {"", 1}}};

}  // namespace

Index parse_integer(const std::string& field, const std::string& text) {
  Index value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) reject(field, text, "a whole number of 64 bits");
  return value;
}

double parse_number(const std::string& field, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) {
    reject(field, text, "a finite number");
  }
  return value;
}

Bytes parse_bytes(const std::string& field, const std::string& text) {
  const std::string allowed = "a size such as 4096, 192KiB, 20MB or 1GiB";
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0) reject(field, text, allowed);
  const std::string_view suffix = std::string_view(text).substr(digits);
  for (const SizeUnit& unit : kSizeUnits) {
    if (unit.suffix != suffix) continue;
    Index count = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + digits, count);
    Index bytes = 0;
    if (error != std::errc{} || __builtin_mul_overflow(count, unit.bytes, &bytes)) {
      reject(field, text, "below 2^63 bytes");
    }
    return Bytes(bytes);
  }
  reject(field, text, allowed);
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return parts;
    begin = comma + 1;
  }
}

std::optional<std::string> nearest(const std::string& word,
                                   const std::vector<std::string>& candidates) {
  // Levenshtein's distance, one row at a time.
  const auto distance = [&](const std::string& other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= other.size(); ++j) {
        const std::size_t substituted = diagonal + (word[i - 1] == other[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row.back();
  };
  constexpr std::size_t kWordMax = 64;
  if (word.size() > kWordMax) return std::nullopt;
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(candidate);
    if (edits < least) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}

}  // namespace flashbound
