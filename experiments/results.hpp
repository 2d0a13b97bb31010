// Results as rows under documented columns, written as a table, CSV, JSON or JSON lines.
#pragma once

#include "core/int128.hpp"

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace flashbound {

struct Column {
  std::string_view name;  // as in CSV, JSON and Python; ends in its unit
  std::string_view unit;  // "bytes", "elements", "1" for plain numbers, "" for text
  std::string_view doc;
};

// Every column of every verb, in the order in which they are written. Append only.
std::span<const Column> all_columns();

// monostate: missing (an empty cell, null).
using Cell = std::variant<std::monostate, Int128, double, std::string>;

struct Row {
  std::vector<Cell> cells;      // one a column of the document
  std::string extra_json = {};  // further members of the JSON object: "\"tensors\": {...}"
};

struct Document {
  std::vector<const Column*> columns;
  std::vector<Row> rows;
  std::vector<std::string_view> shown;  // columns of the table, in its order; empty: all
  std::string footer = {};              // last line of the table
  std::string figure_svg = {};          // above the table of a page; see plot_svg.hpp
  std::string verbatim = {};  // where it is not empty, the table and CSV are this text instead
};

// The columns of these names, in the order of all_columns(). Aborts on a name that is none.
std::vector<const Column*> columns_named(std::span<const std::string_view> names);

// Sets a cell by its column's name.
void set(const Document& document, Row& row, std::string_view column, Cell cell);

// Positions of the columns that a table shows.
std::vector<std::size_t> shown_columns(const Document& document);
// A cell for people: integers in groups of three digits, numbers to three figures.
std::string readable(const Cell& cell);

enum class Format { table, csv, json, jsonl };
// Throws ConfigError.
Format format_named(const std::string& name);

// `manifest_json` is written into JSON documents. Infinities and NaN, which JSON has no numbers
// for, become the strings "inf", "-inf" and "nan", in CSV too.
void write(std::ostream& out, const Document& document, Format format,
           const std::string& manifest_json);

// A cell of CSV, quoted where it must be (RFC 4180).
std::string csv_text(const std::string& text);
// A JSON string literal.
std::string json_string(std::string_view text);

}  // namespace flashbound
