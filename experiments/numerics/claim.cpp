#include "experiments/numerics/claim.hpp"

#include "core/errors.hpp"
#include "experiments/numerics/claims.hpp"

namespace flashbound {
namespace {

std::vector<NumericClaim> gathered() {
  std::vector<NumericClaim> all;
  for (const std::span<const NumericClaim> group :
       {flash3_claims(), flash4_claims(), golden_claims(), qiu_yao_claims(), blanchard_claims(),
        milakov_claims()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::confirmed: return "confirmed";
    case Verdict::refuted: return "refuted";
    case Verdict::qualified: return "qualified";
    case Verdict::not_measurable: return "not measurable here";
  }
  return "";
}

std::span<const NumericClaim> numeric_claims() {
  static const std::vector<NumericClaim> all = gathered();
  return all;
}

const NumericClaim& numeric_claim(std::string_view id) {
  std::string ids;
  for (const NumericClaim& claim : numeric_claims()) {
    if (claim.id == id) return claim;
    ids += (ids.empty() ? "" : ", ") + std::string(claim.id);
  }
  reject("claim", std::string(id), "one of " + ids);
}

}  // namespace flashbound
