#include "experiments/html.hpp"

#include <fmt/format.h>

#include <ostream>

namespace flashbound {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;"
    "color:#1b1f24;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    ".scroll{overflow-x:auto}figure{margin:1em 0}p{white-space:pre-line}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3em .8em;border-bottom:1px solid #d8dee4;text-align:left;white-space:nowrap}"
    "th{border-bottom:2px solid #8c959f}td.number,th.number{text-align:right}"
    "tr.good td.status{color:#116329;font-weight:600}"
    "tr.bad td{background:#ffebe9}tr.bad td.status{color:#a40e26;font-weight:600}"
    "pre{background:#f6f8fa;padding:1em;white-space:pre-wrap;overflow-wrap:anywhere}"
    "dt{font-weight:600}dd{margin:0 0 .4em 1.5em}";

std::string_view alignment(const Column& column) {
  return column.unit.empty() ? "" : " class=\"number\"";
}

// A row whose status is neither good nor bad (infeasible, say) keeps plain colours.
std::string_view row_class(std::string_view status) {
  if (status == "pass" || status == "ok") return " class=\"good\"";
  if (status == "fail" || status == "mismatch") return " class=\"bad\"";
  return "";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

void write_html(std::ostream& out, const std::string& title, const Document& document,
                const std::string& manifest_json) {
  const std::vector<std::size_t> shown = shown_columns(document);
  out << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      << "<meta name=\"viewport\" content=\"width=device-width\"><title>" << escaped(title)
      << "</title><style>" << kStyle << "</style></head><body>\n<h1>" << escaped(title)
      << "</h1>\n";
  if (!document.footer.empty()) out << "<p>" << escaped(document.footer) << "</p>\n";
  if (!document.figure_svg.empty()) out << "<figure>" << document.figure_svg << "</figure>\n";
  out << "<div class=\"scroll\"><table><thead><tr>";
  for (const std::size_t c : shown) {
    const Column& column = *document.columns[c];
    out << fmt::format("<th{}>{}</th>", alignment(column), escaped(column.name));
  }
  out << "</tr></thead><tbody>\n";
  for (const Row& row : document.rows) {
    std::string cells;
    std::string status;
    for (const std::size_t c : shown) {
      const Column& column = *document.columns[c];
      const bool is_status = column.name == "status";
      if (is_status) status = readable(row.cells[c]);
      cells += fmt::format("<td{}>{}</td>", is_status ? " class=\"status\"" : alignment(column),
                           escaped(readable(row.cells[c])));
    }
    out << "<tr" << row_class(status) << ">" << cells << "</tr>\n";
  }
  out << "</tbody></table></div>\n<h2>Columns</h2><dl>\n";
  for (const std::size_t c : shown) {
    const Column& column = *document.columns[c];
    out << fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(column.name), escaped(column.doc));
  }
  out << "</dl>\n<h2>What produced this</h2><pre>" << escaped(manifest_json)
      << "</pre></body></html>\n";
}

}  // namespace flashbound
