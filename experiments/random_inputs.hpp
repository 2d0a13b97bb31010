// Seeded inputs, the same on every platform: no library distribution is used.
#pragma once

#include "core/problem.hpp"
#include "core/tensor.hpp"

#include <cstdint>
#include <random>

namespace flashbound {

// Uniform in [0, 1), and standard normal by Box and Muller.
double uniform(std::mt19937_64& engine);
double normal(std::mt19937_64& engine);

// Standard normal Q, K and V of the problem's shapes.
OwnedInputs normal_inputs(const Problem& problem, std::uint64_t seed);

// Rounds every value to fp32, so that fp32 and fp64 runs begin with the same inputs.
void round_to_fp32(OwnedInputs& inputs);

}  // namespace flashbound
