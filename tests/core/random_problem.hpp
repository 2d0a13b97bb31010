// Random problems for the agreements: small sizes around block edges, every feature, seeded.
#pragma once

#include "core/problem.hpp"

#include <cstdint>
#include <string>

namespace flashbound::testing {

struct RandomCase {
  Problem problem;
  Tile tile;
};

// The same case for the same seed, on any platform (no library distribution is used).
RandomCase random_case(std::uint64_t seed);

std::string describe(const RandomCase& random);

}  // namespace flashbound::testing
