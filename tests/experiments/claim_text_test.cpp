#include "experiments/numerics/claim_text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace flashbound {

TEST_SUITE("experiments.claims") {
  TEST_CASE("a claim's text has header lines then table then verdict and argument") {
    const NumericClaim claim{.id = "XX-01",
                             .source = "A paper",
                             .statement = "Three is less than four.",
                             .published = "",
                             .run = nullptr};
    const ClaimResult result{.table = {.columns = {"format", "n", "max_abs"},
                                       .rows = {{"bf16", "1024", "-1.5e-03"}, {"m10", "8", "-"}}},
                             .verdict = Verdict::not_measurable,
                             .argument = "Nobody counted."};
    CHECK(to_text(claim, result) ==
          "id: XX-01\n"
          "source: A paper\n"
          "statement: Three is less than four.\n"
          "\n"
          "format     n   max_abs\n"
          "bf16    1024  -1.5e-03\n"
          "m10        8         -\n"
          "\n"
          "verdict: not measurable here\n"
          "Nobody counted.\n");
  }

  TEST_CASE("a claim's argument stays within 100 columns") {
    std::string argument;
    for (int word = 0; word < 100; ++word) argument += "seven77 ";
    const NumericClaim claim{"XX-01", "", "", "", nullptr};
    const std::string text =
        to_text(claim, {.table = {}, .verdict = Verdict::confirmed, .argument = argument});
    std::istringstream lines(text);
    std::size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    CHECK(longest > 92);
    CHECK(longest <= 100);
    CHECK(std::count(text.begin(), text.end(), '7') == 200);
  }
}

}  // namespace flashbound
