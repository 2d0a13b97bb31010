// What a fully associative cache of every capacity moves, from one pass over a trace.
//
// LRU and OPT are stack algorithms (Mattson, Gecsei, Slutz, Traiger 1970): each access has a
// distance, and hits exactly in the caches of at least so many lines. The cache writes back and
// allocates on writes. A line is filled on a read miss; a write miss fills nothing, since programs
// write whole tiles. A dirty line is written back when it is evicted, or when the trace ends.
#pragma once

#include "core/int128.hpp"
#include "core/units.hpp"

#include <string>
#include <vector>

namespace flashbound {

enum class StackPolicy { lru, opt };

// So many line accesses have this distance.
struct DistanceCount {
  Index distance = 0;  // lines, at least 1
  Int128 count = 0;
  friend bool operator==(const DistanceCount&, const DistanceCount&) = default;
};

// Of one tensor. All counts are of line accesses; distances ascend.
struct TensorCurve {
  std::string tensor;
  Int128 cold_reads = 0;  // first touches: they miss in every cache
  Int128 cold_writes = 0;
  std::vector<DistanceCount> reads{};  // the others: a hit from `distance` lines on
  std::vector<DistanceCount> writes{};
  Int128 last_writes = 0;  // lines written at all: their last content is always written back
  // Writes followed by another of the same line: written back between the two in caches of fewer
  // than `distance` lines.
  std::vector<DistanceCount> rewrites{};
  friend bool operator==(const TensorCurve&, const TensorCurve&) = default;
};

struct CapacityCurve {
  StackPolicy policy = StackPolicy::lru;
  Index line_bytes = 0;
  std::vector<TensorCurve> tensors{};
  friend bool operator==(const CapacityCurve&, const CapacityCurve&) = default;
};

// Of one tensor at one capacity, in line accesses.
struct CacheTraffic {
  std::string tensor;
  Int128 read_hits = 0;
  Int128 read_misses = 0;  // each fills a line
  Int128 write_hits = 0;
  Int128 write_misses = 0;
  Int128 write_backs = 0;
  friend bool operator==(const CacheTraffic&, const CacheTraffic&) = default;
};

// In a cache of `lines` lines; 0 is no cache, where every access moves its line.
std::vector<CacheTraffic> traffic_at(const CapacityCurve& curve, Index lines);

// Bytes into and out of the cache, over all tensors.
Bytes read_bytes(const std::vector<CacheTraffic>& traffic, Index line_bytes);
Bytes write_bytes(const std::vector<CacheTraffic>& traffic, Index line_bytes);

// Capacities in lines at which traffic differs from that of one line less, ascending.
std::vector<Index> breakpoints(const CapacityCurve& curve);

}  // namespace flashbound
