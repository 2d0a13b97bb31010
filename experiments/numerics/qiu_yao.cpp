#include "experiments/numerics/claims.hpp"

namespace flashbound {

std::span<const NumericClaim> qiu_yao_claims() { return {}; }

}  // namespace flashbound
