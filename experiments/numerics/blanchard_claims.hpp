// The claims of blanchard.cpp.
#pragma once

#include "experiments/numerics/claim.hpp"

namespace flashbound {

// BH-01 to BH-03, without a shift: blanchard_unshifted.cpp
ClaimResult sum_of_exponentials(const ParallelFor& parallel_for);
ClaimResult unshifted_lse(const ParallelFor& parallel_for);
ClaimResult unshifted_softmax_bound(const ParallelFor& parallel_for);
// BH-04 and BH-05, with one and without division: blanchard_shifted.cpp
ClaimResult shifted_bounds(const ParallelFor& parallel_for);
ClaimResult division_free(const ParallelFor& parallel_for);

}  // namespace flashbound
