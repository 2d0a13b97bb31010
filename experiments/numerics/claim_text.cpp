#include "experiments/numerics/claim_text.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace flashbound {
namespace {

constexpr std::size_t kWidth = 100;

std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string result;
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      result += line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? result : result + line + '\n';
}

std::string header(std::string_view key, std::string_view value) {
  return value.empty() ? "" : wrapped(std::string(key) + ": " + std::string(value));
}

bool is_number(const std::string& cell) {
  return !cell.empty() && (cell == "-" || cell == "inf" || cell == "nan" ||
                           std::isdigit(static_cast<unsigned char>(cell.front())) != 0 ||
                           ((cell.front() == '-' || cell.front() == '+') && cell.size() > 1));
}

// Numbers to the right, words to the left, two spaces between columns.
std::string aligned(const ClaimTable& table) {
  std::vector<std::string> lines(table.rows.size() + 1);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = table.columns[c].size();
    bool numbers = true;
    for (const std::vector<std::string>& row : table.rows) {
      width = std::max(width, row.at(c).size());
      numbers = numbers && is_number(row.at(c));
    }
    for (std::size_t line = 0; line < lines.size(); ++line) {
      const std::string& cell = line == 0 ? table.columns[c] : table.rows[line - 1][c];
      const std::string padding(width - cell.size(), ' ');
      lines[line] += (c == 0 ? "" : "  ") + (numbers ? padding + cell : cell + padding);
    }
  }
  std::string result;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + '\n';
  }
  return result;
}

}  // namespace

std::string to_text(const NumericClaim& claim, const ClaimResult& result) {
  return header("id", claim.id) + header("source", claim.source) +
         header("statement", claim.statement) + header("published", claim.published) + '\n' +
         aligned(result.table) + '\n' + header("verdict", name(result.verdict)) +
         wrapped(result.argument);
}

}  // namespace flashbound
