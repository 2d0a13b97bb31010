#include "experiments/numerics/claims.hpp"

namespace flashbound {

std::span<const NumericClaim> milakov_claims() { return {}; }

}  // namespace flashbound
