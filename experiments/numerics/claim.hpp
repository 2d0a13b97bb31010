// Published claims about numerics, each recomputed by a function of its own: never a stored answer.
#pragma once

#include "core/parallel_for.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flashbound {

enum class Verdict { confirmed, refuted, qualified, not_measurable };
std::string_view name(Verdict verdict);

// Numbers are formatted by the claim, to the digits that seeds and libraries leave alone.
struct ClaimTable {
  std::vector<std::string> columns;  // snake_case, with units where there are any
  std::vector<std::vector<std::string>> rows;
};

struct ClaimResult {
  ClaimTable table;
  Verdict verdict = Verdict::not_measurable;
  // Why, with the figures that decide it. Sentences; a qualified claim says when it holds, a
  // refuted one which convention explains the published figure, where one does.
  std::string argument;
};

struct NumericClaim {
  std::string_view id;         // as in the project's list of claims: "FA3-04"
  std::string_view source;     // publication and place
  std::string_view statement;  // what was published
  std::string_view published;  // its figures; empty where it has none
  // Deterministic: the same result for any parallel_for.
  ClaimResult (*run)(const ParallelFor& parallel_for);
};

std::span<const NumericClaim> numeric_claims();
// Throws ConfigError listing the ids when there is no such claim.
const NumericClaim& numeric_claim(std::string_view id);

}  // namespace flashbound
