// What a staircase or an envelope says in a few figures.
#pragma once

#include "core/number_format.hpp"
#include "sim/tile_search.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace flashbound {

// From `from` bytes on, until the next entry, this algorithm moves least.
struct Takeover {
  Bytes from{};
  std::string_view algorithm{};
  friend bool operator==(const Takeover&, const Takeover&) = default;
};
std::vector<Takeover> takeovers(const Staircase& envelope);

// Where `a` moves less than `b`, which an M that `b` does not fit in counts as.
struct Crossing {
  std::optional<Bytes> first{};     // the least M at which it does
  std::optional<Bytes> for_good{};  // the least M from which it always does
};
Crossing crossing(const Staircase& a, const Staircase& b);

// Least squares of log(bytes - fixed) on log(M) over `samples` sizes spread evenly in log M over
// [low, high], both within the staircase: what remains after `fixed` bytes behaves as M^exponent.
// nullopt where fewer than two points of the staircase have something left there.
std::optional<double> slope(const Staircase& staircase, Bytes low, Bytes high, Bytes fixed,
                            int samples = 64);

// The least M from which more does not help, and the least M at which (1 + share) times the final
// bytes are enough. The staircase is not empty.
Bytes knee(const Staircase& staircase);
Bytes knee_within(const Staircase& staircase, double share);

// Bytes moved at M in units of H N^2 d^2 b^2 / M: the leading constant of the flash term, for H
// square heads without a mask. nullopt where nothing fits.
std::optional<double> flash_constant(const Staircase& staircase, const Problem& problem,
                                     NumberFormat dtype, Bytes sram);
// (Bytes moved - fixed) in units of H N^2 d b^1.5 / sqrt(M): that of the small-cache term.
std::optional<double> small_cache_constant(const Staircase& staircase, const Problem& problem,
                                           NumberFormat dtype, Bytes sram, Bytes fixed);

}  // namespace flashbound
