// A report is one page that needs nothing else, whatever its cells hold.
#include "experiments/html.hpp"

#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace flashbound {
namespace {

using testing::contains;

std::string page_of(const std::string& status, const std::string& reason) {
  static constexpr std::string_view kNames[] = {"hbm_bytes", "status", "reason"};
  Document document;
  document.columns = columns_named(kNames);
  document.footer = "1 < 2";
  Row row;
  set(document, row, "hbm_bytes", Int128{1234567});
  set(document, row, "status", status);
  set(document, row, "reason", reason);
  document.rows.push_back(row);
  std::ostringstream out;
  write_html(out, "a & b", document, "{\"x\": \"</pre><script>\"}");
  return out.str();
}

TEST_SUITE("experiments.html") {
  TEST_CASE("texts are escaped wherever they stand") {
    const std::string page = page_of("ok", "<script>alert('\"&')</script>");
    CHECK(!contains(page, "<script"));
    CHECK(contains(page, "&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;"));
    CHECK(contains(page, "<title>a &amp; b</title>"));
    CHECK(contains(page, "<p>1 &lt; 2</p>"));
    CHECK(contains(page, "&quot;&lt;/pre&gt;"));
  }

  TEST_CASE("a page loads nothing from elsewhere") {
    const std::string page = page_of("ok", "");
    for (const char* word : {"http:", "https:", "src=", "href=", "@import", "url("}) {
      CAPTURE(std::string(word));
      CHECK(!contains(page, word));
    }
    CHECK(page.rfind("<!doctype html>", 0) == 0);
    CHECK(contains(page, "</body></html>\n"));
  }

  TEST_CASE("rows are marked by their status and numbers grouped") {
    CHECK(contains(page_of("ok", ""), "<tr class=\"good\"><td class=\"number\">1,234,567</td>"));
    CHECK(contains(page_of("pass", ""), "<tr class=\"good\">"));
    CHECK(contains(page_of("fail", ""), "<tr class=\"bad\">"));
    CHECK(contains(page_of("mismatch", ""), "<tr class=\"bad\">"));
    CHECK(contains(page_of("infeasible", ""), "<tr><td"));
  }

  TEST_CASE("every column of the page is explained") {
    const std::string page = page_of("ok", "");
    CHECK(contains(page, "<dt>hbm_bytes</dt><dd>read and written</dd>"));
    CHECK(contains(page, "<dt>reason</dt>"));
  }
}

}  // namespace
}  // namespace flashbound
