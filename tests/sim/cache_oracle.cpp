#include "tests/sim/cache_oracle.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>

namespace flashbound {
namespace {

struct Held {
  std::uint32_t unit = 0;
  bool dirty = false;
  std::size_t used = 0;       // when it was accessed last
  std::size_t used_next = 0;  // when it will be
};

std::size_t next_use(const AccessTrace& trace, std::size_t at) {
  for (std::size_t later = at + 1; later < trace.accesses.size(); ++later) {
    if (trace.accesses[later] / 2 == trace.accesses[at] / 2) return later;
  }
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace

std::vector<CacheTraffic> cache_by_brute_force(const AccessTrace& trace, StackPolicy policy,
                                               Index lines) {
  std::vector<CacheTraffic> traffic;
  for (const std::string& tensor : trace.tensors) traffic.push_back({.tensor = tensor});
  const auto of = [&](std::uint32_t unit) -> CacheTraffic& {
    return traffic[trace.unit_tensor[unit]];
  };
  std::vector<Held> cache;
  for (std::size_t at = 0; at < trace.accesses.size(); ++at) {
    const std::uint32_t unit = trace.accesses[at] / 2;
    const bool write = trace.accesses[at] % 2 != 0;
    const auto found = std::find_if(cache.begin(), cache.end(),
                                    [&](const Held& held) { return held.unit == unit; });
    const bool hit = found != cache.end();
    (write ? hit ? of(unit).write_hits : of(unit).write_misses
     : hit ? of(unit).read_hits
           : of(unit).read_misses) += 1;
    Held held{.unit = unit, .dirty = write, .used = at, .used_next = next_use(trace, at)};
    if (hit) {
      held.dirty = held.dirty || found->dirty;
      cache.erase(found);
    } else if (lines == 0) {
      if (write) of(unit).write_backs += 1;
      continue;
    } else if (static_cast<Index>(cache.size()) == lines) {
      const auto leaves =
          std::max_element(cache.begin(), cache.end(), [&](const Held& a, const Held& b) {
            return policy == StackPolicy::lru ? a.used > b.used : a.used_next < b.used_next;
          });
      if (leaves->dirty) of(leaves->unit).write_backs += 1;
      cache.erase(leaves);
    }
    cache.push_back(held);
  }
  for (const Held& held : cache) {
    if (held.dirty) of(held.unit).write_backs += 1;
  }
  return traffic;
}

std::vector<Index> distances_by_brute_force(const AccessTrace& trace) {
  std::vector<Index> distances;
  for (std::size_t at = 0; at < trace.accesses.size(); ++at) {
    std::set<std::uint32_t> since;
    Index distance = 0;
    for (std::size_t before = at; before-- > 0 && distance == 0;) {
      since.insert(trace.accesses[before] / 2);
      if (trace.accesses[before] / 2 != trace.accesses[at] / 2) continue;
      for (const std::uint32_t unit : since) distance += trace.lines(unit);
    }
    distances.push_back(distance);
  }
  return distances;
}

}  // namespace flashbound
