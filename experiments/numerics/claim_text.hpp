// A recomputed claim as text: what the command prints, and what experiments/numerics/expected/
// holds.
#pragma once

#include "experiments/numerics/claim.hpp"

#include <string>

namespace flashbound {

// Header lines, the table in aligned columns, the verdict and the argument, within 100 columns but
// for the table. Ends in a newline.
std::string to_text(const NumericClaim& claim, const ClaimResult& result);

}  // namespace flashbound
