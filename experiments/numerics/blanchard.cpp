#include "experiments/numerics/claims.hpp"

namespace flashbound {

std::span<const NumericClaim> blanchard_claims() { return {}; }

}  // namespace flashbound
