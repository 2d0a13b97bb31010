// The functions behind numeric_claims(), one group a file, named after their publication.
#pragma once

#include "experiments/numerics/claim.hpp"

namespace flashbound {

// Golden et al. 2024 (arXiv 2405.02803): golden.cpp
std::span<const NumericClaim> golden_claims();
// Shah et al. 2024, FlashAttention-3 (arXiv 2407.08608): flash3.cpp
std::span<const NumericClaim> flash3_claims();
// Zadouri et al. 2026, FlashAttention-4 (arXiv 2603.05451): flash4.cpp
std::span<const NumericClaim> flash4_claims();
// Qiu and Yao 2025 (arXiv 2510.04212): qiu_yao.cpp
std::span<const NumericClaim> qiu_yao_claims();
// Blanchard, Higham and Higham 2021 (IMA J. Numer. Anal. 41(4)): blanchard.cpp
std::span<const NumericClaim> blanchard_claims();
// Milakov and Gimelshein 2018 (arXiv 1805.02867): milakov.cpp
std::span<const NumericClaim> milakov_claims();

}  // namespace flashbound
