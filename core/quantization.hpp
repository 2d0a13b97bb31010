// From given inputs to the numbers that a run of a recipe begins with, and that the exact answer it
// is compared with begins with too.
#pragma once

#include "core/problem.hpp"
#include "core/recipe.hpp"
#include "core/tensor.hpp"

#include <cstdint>

namespace flashbound {

// Q, K and V rounded to recipe.inputs. With scaling, x becomes s y: y is x / s in the format and s,
// a number of 8 significand bits, takes the largest magnitude of the tensor or of a block of rows
// (of one head) to the format's largest number; the product is exact. Rotation multiplies Q and K
// by the same orthogonal matrix, random signs (of `seed`) and a Hadamard matrix / sqrt(head_dim),
// in fp64 before rounding. Stochastic rounding draws from `seed`. NaN and infinity stay.
// Throws ConfigError where head_dim cannot be rotated.
OwnedInputs rounded_inputs(const Recipe& recipe, const Problem& problem, const Inputs& inputs,
                           std::uint64_t seed = 0);

}  // namespace flashbound
