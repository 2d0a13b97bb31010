// Random problems for the agreements: small sizes around block edges, every feature, seeded.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "core/problem.hpp"
#include "core/tensor.hpp"

namespace flashbound::testing {

struct RandomCase {
  Problem problem;
  Tile tile;
};

// The same case for the same seed, on any platform (no library distribution is used).
RandomCase random_case(std::uint64_t seed);

std::string describe(const RandomCase& random);

// Owning inputs for a problem: standard normal values, by Box-Muller from the seed.
struct OwnedInputs {
  Tensor<double> q, k, v;
  Inputs view() const { return {q.view(), k.view(), v.view()}; }
};
OwnedInputs random_inputs(const Problem& problem, std::uint64_t seed);

// Every value rounded to fp32, so that fp32 and fp64 runs begin with the same inputs.
void round_to_fp32(OwnedInputs& inputs);

}  // namespace flashbound::testing
