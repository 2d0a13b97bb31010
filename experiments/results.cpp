#include "experiments/results.hpp"

#include "core/errors.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ostream>

namespace flashbound {
namespace {

std::size_t index_of(const Document& document, std::string_view column) {
  for (std::size_t c = 0; c < document.columns.size(); ++c) {
    if (document.columns[c]->name == column) return c;
  }
  std::fputs("flashbound: a row or table names a column that its document lacks\n", stderr);
  std::abort();
}

// Shortest digits that read back as the same double.
std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  (void)error;  // 32 characters hold any double
  return {digits.data(), end};
}

std::string plain(const Cell& cell) {
  if (const auto* integer = std::get_if<Int128>(&cell)) return to_decimal(*integer);
  if (const auto* number = std::get_if<double>(&cell)) return shortest(*number);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return "";
}

std::string csv(const Cell& cell) { return csv_text(plain(cell)); }

std::string json(const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return "null";
  if (const auto* text = std::get_if<std::string>(&cell)) return json_string(*text);
  if (const auto* number = std::get_if<double>(&cell)) {
    if (!std::isfinite(*number)) return json_string(shortest(*number));
  }
  return plain(cell);
}

std::string row_json(const Document& document, const Row& row) {
  std::string text = "{";
  for (std::size_t c = 0; c < document.columns.size(); ++c) {
    if (c > 0) text += ", ";
    text += fmt::format("\"{}\": {}", document.columns[c]->name, json(row.cells[c]));
  }
  if (!row.extra_json.empty()) text += ", " + row.extra_json;
  return text + "}";
}

void write_json(std::ostream& out, const Document& document, const std::string& manifest_json) {
  out << "{\"schema_version\": 1,\n\"manifest\": " << manifest_json << ",\n\"columns\": [";
  for (std::size_t c = 0; c < document.columns.size(); ++c) {
    const Column& column = *document.columns[c];
    out << (c > 0 ? ",\n  " : "\n  ")
        << fmt::format("{{\"name\": {}, \"unit\": {}, \"doc\": {}}}", json_string(column.name),
                       json_string(column.unit), json_string(column.doc));
  }
  out << "],\n\"rows\": [";
  for (std::size_t r = 0; r < document.rows.size(); ++r) {
    out << (r > 0 ? ",\n  " : "\n  ") << row_json(document, document.rows[r]);
  }
  out << "]}\n";
}

void write_csv(std::ostream& out, const Document& document) {
  for (std::size_t c = 0; c < document.columns.size(); ++c) {
    out << (c > 0 ? "," : "") << document.columns[c]->name;
  }
  out << "\n";
  for (const Row& row : document.rows) {
    for (std::size_t c = 0; c < row.cells.size(); ++c)
      out << (c > 0 ? "," : "") << csv(row.cells[c]);
    out << "\n";
  }
}

void write_table(std::ostream& out, const Document& document) {
  const std::vector<std::size_t> shown = shown_columns(document);
  std::vector<std::size_t> width;
  for (const std::size_t c : shown) {
    width.push_back(document.columns[c]->name.size());
    for (const Row& row : document.rows) {
      width.back() = std::max(width.back(), readable(row.cells[c]).size());
    }
  }
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (std::size_t s = 0; s < shown.size(); ++s) {
      // Text to the left, numbers to the right.
      const bool left = document.columns[shown[s]]->unit.empty();
      if (s > 0) text += "  ";
      text += left ? fmt::format("{:<{}}", text_of(shown[s]), width[s])
                   : fmt::format("{:>{}}", text_of(shown[s]), width[s]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << "\n";
  };
  line([&](std::size_t c) { return std::string(document.columns[c]->name); });
  for (const Row& row : document.rows) {
    line([&](std::size_t c) { return readable(row.cells[c]); });
  }
  if (!document.footer.empty()) out << document.footer << "\n";
}

}  // namespace

void set(const Document& document, Row& row, std::string_view column, Cell cell) {
  row.cells.resize(document.columns.size());
  row.cells[index_of(document, column)] = std::move(cell);
}

std::vector<std::size_t> shown_columns(const Document& document) {
  std::vector<std::size_t> shown;
  if (document.shown.empty()) {
    for (std::size_t c = 0; c < document.columns.size(); ++c) shown.push_back(c);
  }
  for (const std::string_view name : document.shown) shown.push_back(index_of(document, name));
  return shown;
}

std::string readable(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{:.3g}", *number);
  std::string text = plain(cell);
  if (!std::holds_alternative<Int128>(cell)) return text;
  const std::size_t sign = text.front() == '-' ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

Format format_named(const std::string& name) {
  if (name == "table") return Format::table;
  if (name == "csv") return Format::csv;
  if (name == "json") return Format::json;
  if (name == "jsonl") return Format::jsonl;
  reject("format", name, "table, csv, json or jsonl");
}

void write(std::ostream& out, const Document& document, Format format,
           const std::string& manifest_json) {
  const bool flat = format == Format::table || format == Format::csv;
  if (flat && !document.verbatim.empty()) {
    out << document.verbatim;
    return;
  }
  switch (format) {
    case Format::table: return write_table(out, document);
    case Format::csv: return write_csv(out, document);
    case Format::json: return write_json(out, document, manifest_json);
    case Format::jsonl:
      for (const Row& row : document.rows) out << row_json(document, row) << "\n";
  }
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string json_string(std::string_view text) {
  // Bytes that are no UTF-8 (a file's name may hold them) are replaced rather than refused.
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace flashbound
