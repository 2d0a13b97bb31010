#include "experiments/numerics/claims.hpp"

namespace flashbound {

std::span<const NumericClaim> flash3_claims() { return {}; }

}  // namespace flashbound
