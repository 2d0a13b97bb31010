#include "experiments/numerics/claims.hpp"
#include "experiments/numerics/flash4_claims.hpp"

#include <array>

namespace flashbound {
namespace {

constexpr std::array kClaims{
    NumericClaim{
        "FA4-02", "Zadouri et al. 2026 (arXiv 2603.05451), exp2 emulation",
        "a cubic polynomial on [0, 1) computes 2^x well enough: after rounding to bf16 its "
        "error is that of the exact 2^x",
        "relative error 8.76e-5; 3.898e-3 after rounding to bf16, against 3.887e-3; 0.99 % "
        "of the rounded results differ",
        exp2_by_polynomial},
    NumericClaim{"FA4-04", "Zadouri et al. 2026 (arXiv 2603.05451), conditional rescaling",
                 "rescaling only where the maximum rises by more than tau = 8 (a factor of 256) "
                 "leaves the result exact, since the final normalisation cancels the factor; "
                 "weights reach 2^8 and do not overflow",
                 "tau = 8 for 16-bit operands; weights and sums grow by at most 256",
                 threshold_is_exact},
    NumericClaim{"FA4-05", "Zadouri et al. 2026 (arXiv 2603.05451) and its authors' posts",
                 "conditional rescaling avoids about 90 % of the rescales", "90 %",
                 rescales_avoided},
    NumericClaim{"FA4-06", "Zadouri et al. 2026 (arXiv 2603.05451), the code's note on fp8",
                 "with weights offset by 2^8 for fp8, a threshold tau > 0 saturates e4m3, so the "
                 "code sets tau = 0",
                 "2^(8 + 8) = 65536 > 448", threshold_saturates_fp8},
};

}  // namespace

std::span<const NumericClaim> flash4_claims() { return kClaims; }

}  // namespace flashbound
