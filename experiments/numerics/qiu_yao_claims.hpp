// The claims of qiu_yao.cpp that have files of their own.
#pragma once

#include "experiments/numerics/claim.hpp"

namespace flashbound {

// QY-03, bf16 rounding of P V leans to larger magnitudes: qiu_yao_bias.cpp
ClaimResult tied_maxima_bias(const ParallelFor& parallel_for);
// QY-04, the shift that avoids weights of 1: qiu_yao_shift.cpp
ClaimResult shift_removes_bias(const ParallelFor& parallel_for);
// QY-05, how errors of O enter dQ: qiu_yao_gradient.cpp
ClaimResult delta_identity(const ParallelFor& parallel_for);

}  // namespace flashbound
