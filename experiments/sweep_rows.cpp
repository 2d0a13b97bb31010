#include "experiments/sweep_rows.hpp"

#include "core/errors.hpp"
#include "experiments/command.hpp"
#include "experiments/count_request.hpp"
#include "experiments/model_options.hpp"
#include "experiments/stair_rows.hpp"

#include <string>

namespace flashbound {
namespace {

// What can be said of a point that was refused: the options that are columns by the same name.
Row refused(const Document& document, const Options& options, const std::string& reason) {
  Row row;
  row.cells.resize(document.columns.size());
  for (std::size_t c = 0; c < document.columns.size(); ++c) {
    std::string option(document.columns[c]->name);
    for (char& letter : option) letter = letter == '_' ? '-' : letter;
    const auto value = options.find(option);
    if (!value || value->empty()) continue;
    if (document.columns[c]->unit.empty()) {
      row.cells[c] = *value;
    } else if (options.given(option)) {
      row.cells[c] = Int128{parse_integer(option, *value)};
    }
  }
  set(document, row, "status", std::string("infeasible"));
  set(document, row, "reason", reason);
  return row;
}

}  // namespace

bool can_sweep(const VerbText& verb) { return verb.verb == kCount || verb.verb == kTile; }

void require_sweepable(const Options& options) {
  if (options.verb().verb == kCount) {
    count_request(options);
  } else {
    stair_request(options);
    sram_of(options);
  }
}

Document sweep_document(const VerbText& verb) {
  Document document = verb.verb == kCount ? count_document() : stair_document();
  std::vector<std::string_view> names{"point"};
  for (const Column* column : document.columns) names.push_back(column->name);
  document.columns = columns_named(names);
  document.shown.insert(document.shown.begin(), "point");
  if (document.shown.back() != "reason") document.shown.emplace_back("reason");
  return document;
}

void append_point(const Options& options, Index point, Document& document) {
  const std::size_t before = document.rows.size();
  try {
    if (options.verb().verb == kCount) {
      append_counts(options, document);
    } else {
      append_tiles(options, document);
    }
  } catch (const ConfigError& error) {
    document.rows.resize(before);
    document.rows.push_back(refused(document, options, error.what()));
  }
  for (std::size_t r = before; r < document.rows.size(); ++r) {
    set(document, document.rows[r], "point", Int128{point});
  }
}

}  // namespace flashbound
