#include "experiments/numerics_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string>

namespace flashbound {
namespace {

constexpr std::size_t kWidth = 100;

// Words in lines of at most kWidth characters, the first after `first`, the others indented.
std::string wrapped(const std::string& first, std::string_view text) {
  const std::string indent(first.size(), ' ');
  std::string result;
  std::string line = first;
  bool begun = false;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (begun && line.size() + 1 + word.size() > kWidth) {
      result += line + "\n";
      line = indent;
      begun = false;
    }
    line += (begun ? " " : "") + word;
    begun = true;
  }
  return result + line + "\n";
}

std::string table_text(const ClaimTable& table) {
  std::vector<std::vector<std::string>> lines{table.columns};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    std::string padded = "  ";
    for (std::size_t c = 0; c < line.size(); ++c) {
      padded += fmt::format("{:<{}}  ", line[c], widths[c]);
    }
    padded.erase(padded.find_last_not_of(' ') + 1);
    text += padded + "\n";
  }
  return text;
}

std::string readable_text(const RecomputedClaim& one) {
  const NumericClaim& claim = *one.claim;
  std::string text = fmt::format("{}: {}\n", claim.id, name(one.result.verdict));
  text += wrapped("  source     ", claim.source);
  text += wrapped("  statement  ", claim.statement);
  if (!claim.published.empty()) text += wrapped("  published  ", claim.published);
  if (!one.result.table.columns.empty()) text += "\n" + table_text(one.result.table) + "\n";
  return text + wrapped("  verdict    ", one.result.argument);
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) line += (c > 0 ? "," : "") + csv_text(cells[c]);
  return line + "\n";
}

std::string csv_table(const ClaimTable& table) {
  std::string text = csv_line(table.columns);
  for (const std::vector<std::string>& row : table.rows) text += csv_line(row);
  return text;
}

std::string json_array(const std::vector<std::string>& texts) {
  std::string json = "[";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    json += (i > 0 ? ", " : "") + json_string(texts[i]);
  }
  return json + "]";
}

std::string table_json(const ClaimTable& table) {
  std::string rows;
  for (const std::vector<std::string>& row : table.rows) {
    rows += (rows.empty() ? "" : ", ") + json_array(row);
  }
  return "\"table\": {\"columns\": " + json_array(table.columns) + ", \"rows\": [" + rows + "]}";
}

Row row_of(const Document& document, const RecomputedClaim& one) {
  Row row;
  const auto text = [&](std::string_view column, std::string_view value) {
    set(document, row, column, std::string(value));
  };
  text("claim", one.claim->id);
  text("source", one.claim->source);
  text("statement", one.claim->statement);
  if (!one.claim->published.empty()) text("published", one.claim->published);
  text("verdict", name(one.result.verdict));
  text("argument", one.result.argument);
  row.extra_json = table_json(one.result.table);
  return row;
}

}  // namespace

Document claims_document(const std::vector<RecomputedClaim>& claims, Format format) {
  constexpr std::array<std::string_view, 6> kNames{"claim",     "source",  "statement",
                                                   "published", "verdict", "argument"};
  Document document;
  document.columns = columns_named(kNames);
  for (const RecomputedClaim& one : claims) document.rows.push_back(row_of(document, one));
  if (format == Format::csv && claims.size() == 1) {
    document.verbatim = csv_table(claims.front().result.table);
  }
  if (format == Format::table) {
    for (const RecomputedClaim& one : claims) {
      document.verbatim += (document.verbatim.empty() ? "" : "\n") + readable_text(one);
    }
  }
  return document;
}

}  // namespace flashbound
