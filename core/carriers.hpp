// Which of the processor's formats carries a recipe, and what numbers its operations see.
#pragma once

#include "core/recipe.hpp"
#include "core/rounder.hpp"

namespace flashbound {

// Numbers that a run adds, multiplies and divides. Those of scaled inputs, which it only multiplies
// with each other and with weights, count for their bits.
OperandRange operand_range(const Recipe& recipe);

// Whether float carries the recipe: every operation, done in float and rounded, is the recipe's.
bool float_carries(const Recipe& recipe);

}  // namespace flashbound
