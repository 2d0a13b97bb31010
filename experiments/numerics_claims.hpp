// Published claims about numerics, recomputed, as a document.
#pragma once

#include "experiments/command.hpp"
#include "experiments/numerics/claim.hpp"
#include "experiments/results.hpp"

#include <vector>

namespace flashbound {

// A claim beside what became of it.
struct RecomputedClaim {
  const NumericClaim* claim = nullptr;
  ClaimResult result{};
};

// One row a claim; JSON rows add "table": {"columns": [...], "rows": [[...]]}. As a table it is
// text to read; as CSV it is the table of a single claim, and of several their rows.
Document claims_document(const std::vector<RecomputedClaim>& claims, Format format);

}  // namespace flashbound
