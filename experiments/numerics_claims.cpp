#include "experiments/numerics_claims.hpp"

#include "experiments/numerics/claim_text.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace flashbound {
namespace {

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
      document.verbatim +=
          (document.verbatim.empty() ? "" : "\n") + to_text(*one.claim, one.result);
    }
  }
  return document;
}

}  // namespace flashbound
