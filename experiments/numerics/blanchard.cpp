#include "experiments/numerics/blanchard_claims.hpp"
#include "experiments/numerics/claims.hpp"

#include <array>

namespace flashbound {
namespace {

constexpr std::array kClaims{
    NumericClaim{"BH-01", "Blanchard, Higham and Higham 2021 (IMA J. Numer. Anal. 41(4)), eq. 3.3",
                 "the recursively computed sum s of n exponentials errs by at most "
                 "(n + 1) u s + O(u^2)",
                 "", sum_of_exponentials},
    NumericClaim{"BH-02", "Blanchard, Higham and Higham 2021, before Theorem 3.2",
                 "the unshifted log-sum-exp y errs by at most u |y| + (n + 1) u + O(u^2)", "",
                 unshifted_lse},
    NumericClaim{"BH-03", "Blanchard, Higham and Higham 2021, Theorem 3.3, eq. 3.6",
                 "the unshifted softmax errs by at most (n + 3) u + O(u^2), relatively in the "
                 "infinity norm",
                 "", unshifted_softmax_bound},
    NumericClaim{"BH-04",
                 "Blanchard, Higham and Higham 2021, section 4, as recorded from memory in the "
                 "project's list of claims",
                 "with the maximum as a shift the log-sum-exp y errs by at most "
                 "|(y + n - x_min) / y| u relatively and the softmax by at most "
                 "(n + 2 + 2 (x_max - x_min)) u",
                 "", shifted_bounds},
    NumericClaim{"BH-05", "Blanchard, Higham and Higham 2021, section 5 and abstract",
                 "the shifted softmax is about as accurate as the unshifted one; the division-free "
                 "exp(x - lse) can lose accuracy",
                 "", division_free},
};

}  // namespace

std::span<const NumericClaim> blanchard_claims() { return kClaims; }

}  // namespace flashbound
