// One head of one sequence, to run in a recipe's arithmetic.
#pragma once

#include "core/numeric.hpp"
#include "core/problem.hpp"
#include "core/recipe.hpp"
#include "core/tensor.hpp"

namespace flashbound {

struct EmulatedHead {
  Problem problem{};
  Tile tile{};
  OwnedInputs inputs{};
};

// Standard normal inputs; logits have the standard deviation `score_std` where rows of q have the
// norm sqrt(head_dim), to which they are scaled.
EmulatedHead head_with_scores_of(const Shape& shape, const Tile& tile, double score_std,
                                 std::uint64_t seed);

// flash2 on the head, in the recipe.
NumericRun run_flash2(const EmulatedHead& head, const Recipe& recipe);

// Every operation rounded to fp64 or another format, sums term by term: unlike the recipes fp64 and
// fp32 it obeys Recipe::rescale and Recipe::shift.
Recipe sequential_recipe(NumberFormat format);

}  // namespace flashbound
