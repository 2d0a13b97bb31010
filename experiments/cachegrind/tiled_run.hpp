// One run of tiled_program under cachegrind: its sizes, its arrays, the caches.
#pragma once

#include "core/int128.hpp"
#include "sim/cache_level.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace flashbound {

struct NamedArray {
  std::string name;
  std::uint64_t address = 0;  // of its first byte
  std::uint64_t bytes = 0;
};

struct TiledRun {
  Index seqlen_q = 0;
  Index seqlen_kv = 0;
  Index head_dim = 0;
  Index block_q = 0;
  Index block_kv = 0;
  std::vector<NamedArray> arrays{};
  CacheLevel instructions{};
  CacheLevel data{};
  std::vector<CacheLevel> last{};  // each of them in a run of its own
};

// The array that the address lies in; null for none.
const NamedArray* array_at(const TiledRun& run, std::uint64_t address);

}  // namespace flashbound
