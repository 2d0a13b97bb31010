#include "experiments/numerics/claims.hpp"

namespace flashbound {

std::span<const NumericClaim> flash4_claims() { return {}; }

}  // namespace flashbound
