// Claims about numerics, recomputed in full: their text is that of experiments/numerics/expected/,
// which experiments/numerics/remake writes. Without threads, since results do not depend on them.
#include "experiments/numerics/claim.hpp"
#include "experiments/numerics/claim_text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace flashbound {
namespace {

std::filesystem::path expected_folder() {
  return std::filesystem::path(FLASHBOUND_SOURCE_DIR) / "experiments/numerics/expected";
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void check(std::string_view id) {
  const NumericClaim& claim = numeric_claim(id);
  const std::string text = to_text(claim, claim.run(serial));
  const std::filesystem::path path = expected_folder() / (std::string(id) + ".txt");
  CHECK(text == contents(path));
}

}  // namespace

TEST_SUITE("experiments.claims") {
  TEST_CASE("every claim has an expected text and every expected text a claim") {
    std::set<std::string> claims;
    for (const NumericClaim& claim : numeric_claims()) claims.insert(std::string(claim.id));
    std::set<std::string> texts;
    for (const auto& entry : std::filesystem::directory_iterator(expected_folder())) {
      texts.insert(entry.path().stem().string());
    }
    CHECK(claims == texts);
  }

  TEST_CASE("the list of claims has each with the verdict of its text") {
    const std::string list = contents(expected_folder().parent_path() / "README.md");
    for (const NumericClaim& claim : numeric_claims()) {
      const std::string id(claim.id);
      CAPTURE(id);
      const std::string text = contents(expected_folder() / (id + ".txt"));
      const std::size_t at = text.find("\nverdict: ") + std::string("\nverdict: ").size();
      const std::string verdict = text.substr(at, text.find('\n', at) - at);
      CHECK(list.find("| " + id + " | " + verdict + " |") != std::string::npos);
    }
  }

  TEST_CASE("BH-01 recomputes to its expected text") { check("BH-01"); }
  TEST_CASE("BH-02 recomputes to its expected text") { check("BH-02"); }
  TEST_CASE("BH-03 recomputes to its expected text") { check("BH-03"); }
  TEST_CASE("BH-04 recomputes to its expected text") { check("BH-04"); }
  TEST_CASE("BH-05 recomputes to its expected text") { check("BH-05"); }
  TEST_CASE("FA3-04 recomputes to its expected text") { check("FA3-04"); }
  TEST_CASE("FA4-02 recomputes to its expected text") { check("FA4-02"); }
  TEST_CASE("FA4-04 recomputes to its expected text") { check("FA4-04"); }
  TEST_CASE("FA4-05 recomputes to its expected text") { check("FA4-05"); }
  TEST_CASE("FA4-06 recomputes to its expected text") { check("FA4-06"); }
  TEST_CASE("GO-02 recomputes to its expected text") { check("GO-02"); }
  TEST_CASE("GO-03 recomputes to its expected text") { check("GO-03"); }
  TEST_CASE("GO-05 recomputes to its expected text") { check("GO-05"); }
  TEST_CASE("MG-04 recomputes to its expected text") { check("MG-04"); }
  TEST_CASE("QY-02 recomputes to its expected text") { check("QY-02"); }
  TEST_CASE("QY-03 recomputes to its expected text") { check("QY-03"); }
  TEST_CASE("QY-04 recomputes to its expected text") { check("QY-04"); }
  TEST_CASE("QY-05 recomputes to its expected text") { check("QY-05"); }
}

// Minutes with sanitizers, which run the same code in the shorter ones.
TEST_SUITE("experiments.claims_long") {
  TEST_CASE("FA3-05 recomputes to its expected text") { check("FA3-05"); }
  TEST_CASE("GO-01 recomputes to its expected text") { check("GO-01"); }
  TEST_CASE("GO-04 recomputes to its expected text") { check("GO-04"); }
}

}  // namespace flashbound
