// What an envelope says, in sentences.
#pragma once

#include "experiments/stair_rows.hpp"

#include <string>

namespace flashbound {

// Who takes over where, where more memory stops helping, how far the envelope is from the lower
// bound at its steepest, and, for square heads without a mask, the laws of the two terms.
std::string envelope_text(const StairRequest& request, const std::vector<Staircase>& found,
                          const Staircase& merged);

}  // namespace flashbound
