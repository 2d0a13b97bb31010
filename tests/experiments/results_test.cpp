// The exact bytes of every format, for a small document that holds every kind of cell.
#include "experiments/results.hpp"

#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <sstream>

namespace flashbound {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Document small_document() {
  static constexpr std::string_view kNames[] = {"algorithm", "hbm_bytes", "ratio_to_lower_bound",
                                                "reason"};
  Document document;
  document.columns = columns_named(kNames);
  Row first;
  set(document, first, "algorithm", std::string("flash2"));
  set(document, first, "hbm_bytes", Int128{1} << 100);
  set(document, first, "ratio_to_lower_bound", 1.5);
  set(document, first, "reason", std::string("so \"it\", is"));
  Row second;
  set(document, second, "reason", std::string("a\nb"));
  set(document, second, "ratio_to_lower_bound", kInfinity);
  set(document, second, "hbm_bytes", Int128{-1234567});
  Row third;
  set(document, third, "ratio_to_lower_bound", std::numeric_limits<double>::quiet_NaN());
  set(document, third, "hbm_bytes", Int128{0});
  document.rows = {first, second, third};
  return document;
}

std::string written(const Document& document, Format format) {
  std::ostringstream out;
  write(out, document, format, "{\"version\": \"0\"}");
  return out.str();
}

TEST_SUITE("experiments.results") {
  TEST_CASE("CSV quotes as RFC 4180 does and leaves missing cells empty") {
    CHECK(written(small_document(), Format::csv) ==
          "algorithm,hbm_bytes,ratio_to_lower_bound,reason\n"
          "flash2,1267650600228229401496703205376,1.5,\"so \"\"it\"\", is\"\n"
          ",-1234567,inf,\"a\nb\"\n"
          ",0,nan,\n");
  }

  TEST_CASE("JSON lines are one object a row") {
    CHECK(written(small_document(), Format::jsonl) ==
          "{\"algorithm\": \"flash2\", \"hbm_bytes\": 1267650600228229401496703205376, "
          "\"ratio_to_lower_bound\": 1.5, \"reason\": \"so \\\"it\\\", is\"}\n"
          "{\"algorithm\": null, \"hbm_bytes\": -1234567, \"ratio_to_lower_bound\": \"inf\", "
          "\"reason\": \"a\\nb\"}\n"
          "{\"algorithm\": null, \"hbm_bytes\": 0, \"ratio_to_lower_bound\": \"nan\", "
          "\"reason\": null}\n");
  }

  TEST_CASE("JSON documents hold the manifest, the columns and the rows") {
    Document document = small_document();
    document.rows.resize(1);
    document.rows[0].extra_json = "\"tensors\": {}";
    CHECK(written(document, Format::json) ==
          "{\"schema_version\": 1,\n"
          "\"manifest\": {\"version\": \"0\"},\n"
          "\"columns\": [\n"
          "  {\"name\": \"algorithm\", \"unit\": \"\", \"doc\": \"algorithm that was counted or "
          "run\"},\n"
          "  {\"name\": \"hbm_bytes\", \"unit\": \"bytes\", \"doc\": \"read and written\"},\n"
          "  {\"name\": \"ratio_to_lower_bound\", \"unit\": \"1\", \"doc\": \"hbm_bytes / "
          "lower_bound_bytes; missing where that is 0\"},\n"
          "  {\"name\": \"reason\", \"unit\": \"\", \"doc\": \"why the status is not ok or "
          "pass\"}],\n"
          "\"rows\": [\n"
          "  {\"algorithm\": \"flash2\", \"hbm_bytes\": 1267650600228229401496703205376, "
          "\"ratio_to_lower_bound\": 1.5, \"reason\": \"so \\\"it\\\", is\", \"tensors\": {}}]}\n");
    CHECK(nlohmann::json::accept(written(small_document(), Format::json)));
    document.rows.clear();
    CHECK(nlohmann::json::accept(written(document, Format::json)));
  }

  TEST_CASE("tables group digits and align numbers to the right") {
    Document document = small_document();
    document.rows.erase(document.rows.begin() + 1);
    document.rows[0].cells[1] = Int128{-123456};
    document.shown = {"reason", "hbm_bytes", "ratio_to_lower_bound", "algorithm"};
    document.footer = "2 rows";
    CHECK(written(document, Format::table) ==
          "reason       hbm_bytes  ratio_to_lower_bound  algorithm\n"
          "so \"it\", is   -123,456                   1.5  flash2\n"
          "                     0                   nan\n"
          "2 rows\n");
    document.shown.clear();
    document.footer.clear();
    CHECK(written(document, Format::table) ==
          "algorithm  hbm_bytes  ratio_to_lower_bound  reason\n"
          "flash2      -123,456                   1.5  so \"it\", is\n"
          "                   0                   nan\n");
  }

  TEST_CASE("digits are grouped by three from the right") {
    Document document = small_document();
    document.rows.resize(1);
    document.shown = {"hbm_bytes"};
    const auto shown = [&](Int128 value) {
      document.rows[0].cells[1] = value;
      std::string text = written(document, Format::table);
      text.erase(0, text.find('\n') + 1);
      return text.substr(text.find_first_not_of(' '));
    };
    CHECK(shown(0) == "0\n");
    CHECK(shown(999) == "999\n");
    CHECK(shown(1000) == "1,000\n");
    CHECK(shown(-999) == "-999\n");
    CHECK(shown(-1000) == "-1,000\n");
    CHECK(shown(1234567) == "1,234,567\n");
    CHECK(shown(Int128{1} << 100) == "1,267,650,600,228,229,401,496,703,205,376\n");
  }

  TEST_CASE("numbers have the fewest digits that read back equal") {
    Document document = small_document();
    document.rows.resize(1);
    for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, -0.0, 100000.0, 1e22, 123456789.0}) {
      document.rows[0].cells[2] = value;
      std::string line = written(document, Format::jsonl);
      CAPTURE(line);
      CHECK(nlohmann::json::parse(line)["ratio_to_lower_bound"].get<double>() == value);
    }
    document.rows[0].cells[2] = 0.1;
    CHECK(testing::contains(written(document, Format::csv), ",0.1,"));
  }

  TEST_CASE("strings escape what JSON escapes and replace what is no UTF-8") {
    CHECK(json_string("a\"b\\c\n\t\x01") == "\"a\\\"b\\\\c\\n\\t\\u0001\"");
    CHECK(json_string("\xC3\xA9") == "\"\xC3\xA9\"");
    CHECK(json_string("\xFF") == "\"\xEF\xBF\xBD\"");
    CHECK(json_string(std::string_view("\0", 1)) == "\"\\u0000\"");
  }

  TEST_CASE("formats are known by name") {
    CHECK(format_named("table") == Format::table);
    CHECK(format_named("csv") == Format::csv);
    CHECK(format_named("json") == Format::json);
    CHECK(format_named("jsonl") == Format::jsonl);
    CHECK(testing::rejection([] { format_named("CSV"); }) ==
          "format = CSV: must be table, csv, json or jsonl");
  }
}

}  // namespace
}  // namespace flashbound
