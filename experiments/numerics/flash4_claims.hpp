// The claims of flash4.cpp that have files of their own.
#pragma once

#include "experiments/numerics/claim.hpp"

namespace flashbound {

// FA4-02, the polynomial for 2^x: flash4_exp2.cpp
ClaimResult exp2_by_polynomial(const ParallelFor& parallel_for);
// FA4-04, rescaling beyond a threshold gives the same result: flash4_threshold.cpp
ClaimResult threshold_is_exact(const ParallelFor& parallel_for);
// FA4-05, how many rescales it avoids: flash4_rescales.cpp
ClaimResult rescales_avoided(const ParallelFor& parallel_for);
// FA4-06, it saturates in fp8: flash4_fp8.cpp
ClaimResult threshold_saturates_fp8(const ParallelFor& parallel_for);

}  // namespace flashbound
