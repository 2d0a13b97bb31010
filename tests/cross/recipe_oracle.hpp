// Attention under a recipe by plain loops over rows and keys, every operation exact and rounded
// once: an oracle for the numeric machine. It shares Schedule and FloatFormat with it, no more.
#pragma once

#include "core/problem.hpp"
#include "core/recipe.hpp"
#include "core/tensor.hpp"

#include <vector>

namespace flashbound::testing {

struct OracleRow {
  std::vector<double> o;
  double lse = 0;  // of flash2 only
};

// The rows of one head of one sequence. Recipes that round stochastically or sum in any order have
// no such oracle.
std::vector<OracleRow> flash2_oracle(const Recipe& recipe, const Problem& problem, const Tile& tile,
                                     const Inputs& inputs, const Sequence& at, Index head);
std::vector<OracleRow> standard_oracle(const Recipe& recipe, const Problem& problem,
                                       const Tile& tile, const Inputs& inputs, const Sequence& at,
                                       Index head);

}  // namespace flashbound::testing
