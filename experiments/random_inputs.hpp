// Seeded inputs, the same on every platform: no library distribution is used.
#pragma once

#include "core/problem.hpp"
#include "core/tensor.hpp"

#include <cstdint>
#include <random>

namespace flashbound {

// Q, K and V that own their values.
struct OwnedInputs {
  Tensor<double> q, k, v;
  Inputs view() const { return {q.view(), k.view(), v.view()}; }
};

// Uniform in [0, 1), and standard normal by Box and Muller.
double uniform(std::mt19937_64& engine);
double normal(std::mt19937_64& engine);

// Standard normal Q, K and V of the problem's shapes.
OwnedInputs normal_inputs(const Problem& problem, std::uint64_t seed);

// Rounds every value to fp32, so that fp32 and fp64 runs begin with the same inputs.
void round_to_fp32(OwnedInputs& inputs);

}  // namespace flashbound
