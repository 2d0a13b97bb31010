#include "sim/opt_distances.hpp"

#include "core/errors.hpp"

#include <string>

namespace flashbound {
namespace {

// A move takes about as long as a level of division does for one access, of which there are
// log2 V; where chains are this short they win.
constexpr double kMovesPerAccess = 16;
constexpr std::size_t kAccessesMax = std::size_t{1} << 31;

}  // namespace

std::vector<std::uint32_t> opt_distances(std::span<const std::uint32_t> units, Index unit_count) {
  if (units.size() > kAccessesMax) {
    reject("accesses", std::to_string(units.size()), "at most " + std::to_string(kAccessesMax));
  }
  if (auto distances = opt_distances_by_chain(units, unit_count, kMovesPerAccess)) {
    return *std::move(distances);
  }
  return opt_distances_by_division(units, unit_count);
}

}  // namespace flashbound
