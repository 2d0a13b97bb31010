// Claims as text, CSV and JSON.
#include "experiments/numerics_claims.hpp"

#include "experiments/numerics/claim_text.hpp"
#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace flashbound {
namespace {

using testing::contains;
using Json = nlohmann::json;

const NumericClaim kTwice{"T-1", "Author 2025, section 2", "Twice two is five", "5", nullptr};
const NumericClaim kThrice{"T-2", "Author 2026", "Thrice two is six", "", nullptr};

std::vector<RecomputedClaim> recomputed() {
  return {{&kTwice,
           {{{"factor", "product"}, {{"2", "4"}, {"two, or so", "\"4\""}}},
            Verdict::refuted,
            "Twice two is 4."}},
          {&kThrice, {{{"n"}, {{"6"}}}, Verdict::confirmed, "It is."}}};
}

std::string written(const std::vector<RecomputedClaim>& claims, Format format) {
  std::ostringstream out;
  write(out, claims_document(claims, format), format, "{}");
  return out.str();
}

TEST_SUITE("experiments.numerics_claims") {
  TEST_CASE("a table is the text of each claim with an empty line between") {
    const std::vector<RecomputedClaim> claims = recomputed();
    CHECK(written(claims, Format::table) ==
          to_text(kTwice, claims[0].result) + "\n" + to_text(kThrice, claims[1].result));
  }

  TEST_CASE("CSV is the table of a single claim and the rows of several") {
    CHECK(written({recomputed().front()}, Format::csv) ==
          "factor,product\n2,4\n\"two, or so\",\"\"\"4\"\"\"\n");
    CHECK(contains(written(recomputed(), Format::csv), ",T-2,"));
    CHECK(contains(written(recomputed(), Format::csv), ",confirmed,It is.\n"));
  }

  TEST_CASE("JSON has each claim with its table") {
    const Json document = Json::parse(written(recomputed(), Format::json));
    REQUIRE(document["rows"].size() == 2);
    const Json& row = document["rows"][0];
    CHECK(row["claim"] == "T-1");
    CHECK(row["verdict"] == "refuted");
    CHECK(row["published"] == "5");
    CHECK(row["argument"] == "Twice two is 4.");
    CHECK(row["table"]["columns"] == Json({"factor", "product"}));
    CHECK(row["table"]["rows"][1] == Json({"two, or so", "\"4\""}));
    CHECK(document["rows"][1]["published"].is_null());
    std::istringstream lines(written(recomputed(), Format::jsonl));
    for (std::string line; std::getline(lines, line);) CHECK(Json::accept(line));
  }
}

}  // namespace
}  // namespace flashbound
