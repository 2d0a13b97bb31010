#include "tests/sim/level_oracle.hpp"

#include <limits>
#include <random>

namespace flashbound {
namespace {

struct Way {
  bool valid = false;
  bool dirty = false;
  OracleAccess held{};
  std::size_t entered = 0;
  std::size_t used = 0;
};
using Set = std::vector<Way>;

std::size_t next_use(const std::vector<OracleAccess>& stream, std::size_t now, Index line) {
  for (std::size_t t = now + 1; t < stream.size(); ++t) {
    if (stream[t].line == line) return t;
  }
  return std::numeric_limits<std::size_t>::max();
}

// Tree-PLRU by its definition: of the two halves, the victim is in the one that was not used last;
// then the same within it.
std::size_t plru_victim(const Set& set, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return begin;
  const std::size_t middle = (begin + end) / 2;
  std::size_t last = begin;
  for (std::size_t w = begin; w < end; ++w) {
    if (set[w].used > set[last].used) last = w;
  }
  return last < middle ? plru_victim(set, middle, end) : plru_victim(set, begin, middle);
}

std::size_t victim(const CacheLevel& level, const Set& set, const std::vector<OracleAccess>& stream,
                   std::size_t now, std::mt19937_64& random) {
  if (level.policy == Replacement::random) return random() % set.size();
  if (level.policy == Replacement::plru) return plru_victim(set, 0, set.size());
  std::size_t best = 0;
  const auto worse = [&](const Way& a, const Way& b) {
    if (level.policy == Replacement::lru) return a.used < b.used;
    if (level.policy == Replacement::fifo) return a.entered < b.entered;
    return next_use(stream, now, a.held.line) > next_use(stream, now, b.held.line);
  };
  for (std::size_t w = 1; w < set.size(); ++w) {
    if (worse(set[w], set[best])) best = w;
  }
  return best;
}

}  // namespace

std::vector<OracleAccess> level_by_brute_force(const CacheLevel& level,
                                               const std::vector<OracleAccess>& stream,
                                               LevelResult& result) {
  std::vector<Set> sets(static_cast<std::size_t>(level.sets()),
                        Set(static_cast<std::size_t>(level.set_ways())));
  std::vector<OracleAccess> onward;
  std::mt19937_64 random(level.seed);
  const auto leave = [&](Way& way) {
    if (way.valid && way.dirty) {
      result.tensors[way.held.tensor].write_backs += 1;
      onward.push_back({way.held.line, way.held.tensor, true});
    }
    way.dirty = false;
  };
  for (std::size_t now = 0; now < stream.size(); ++now) {
    const OracleAccess& access = stream[now];
    LevelTraffic& traffic = result.tensors[access.tensor];
    Set& set = sets[static_cast<std::size_t>(access.line % level.sets())];
    Way* way = nullptr;
    for (Way& w : set) {
      if (w.valid && w.held.line == access.line) way = &w;
    }
    if (way != nullptr) {
      (access.write ? traffic.write_hits : traffic.read_hits) += 1;
    } else {
      (access.write ? traffic.write_misses : traffic.read_misses) += 1;
      if (access.write && level.write_miss == WriteMiss::around) {
        traffic.writes_around += 1;
        onward.push_back(access);
        continue;
      }
      for (Way& w : set) {
        if (!w.valid && way == nullptr) way = &w;
      }
      if (way == nullptr) way = &set[victim(level, set, stream, now, random)];
      leave(*way);
      *way = {.valid = true, .held = access, .entered = now + 1};
      if (!access.write || level.write_miss == WriteMiss::fetch) {
        traffic.fills += 1;
        onward.push_back({access.line, access.tensor, false});
      }
    }
    way->used = now + 1;
    if (!access.write) continue;
    if (level.write_through) {
      traffic.write_throughs += 1;
      onward.push_back(access);
    } else {
      way->dirty = true;
    }
  }
  for (Set& set : sets) {
    for (Way& way : set) leave(way);
  }
  return onward;
}

}  // namespace flashbound
