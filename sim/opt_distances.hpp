// Stack distances under OPT (Belady 1966; as a stack algorithm Mattson, Gecsei, Slutz and Traiger
// 1970): the least capacity at which an access hits if the line used again last is the one to
// leave. The line accessed always enters. OPT misses least; it does not know reads from writes.
//
// Two algorithms give the same distances and share nothing:
//   by_chain     keeps the OPT stack. An access moves the items that are prefix maxima of next use
//                above it down to each other's places: about one on cyclic traces such as flash2's,
//                hundreds on irregular ones.
//   by_division  divides capacities: which reuses a cache of C lines keeps splits the others
//   between
//                smaller and larger capacities. O(n log V) steps of nearly constant time whatever
//                the trace, for n accesses of V lines.
#pragma once

#include "core/int128.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace flashbound {

// By access: the distance, 0 at a first touch. `units` as touched in order, each below unit_count;
// at most 2^31 of them.
std::vector<std::uint32_t> opt_distances(std::span<const std::uint32_t> units, Index unit_count);

// nullopt once the maxima moved exceed `moves_per_access` (and 2^20 in all).
std::optional<std::vector<std::uint32_t>> opt_distances_by_chain(
    std::span<const std::uint32_t> units, Index unit_count, double moves_per_access);
std::vector<std::uint32_t> opt_distances_by_division(std::span<const std::uint32_t> units,
                                                     Index unit_count);

}  // namespace flashbound
