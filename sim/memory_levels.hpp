// Caches in a row: what misses in one is an access of the next, and what leaves the last crosses to
// HBM. Level n + 1 sees, in order, the fills of level n as reads and its write-backs,
// write-throughs and writes around as writes, of the lines they lie in. Nothing makes a level hold
// what another holds (no inclusion, no exclusion). At the end dirty lines are written back, nearest
// level first, in the order of their slots.
#pragma once

#include "sim/access_trace.hpp"
#include "sim/cache_level.hpp"

#include <span>
#include <string>
#include <vector>

namespace flashbound {

// Of one tensor at one level, in accesses of that level's lines.
struct LevelTraffic {
  std::string tensor;
  Index read_hits = 0;
  Index read_misses = 0;
  Index write_hits = 0;
  Index write_misses = 0;
  Index fills = 0;           // lines that came from the next level
  Index write_backs = 0;     // dirty lines that went there, the last ones at the end
  Index write_throughs = 0;  // writes that went there and to this level
  Index writes_around = 0;   // writes that went there only
  // Accesses of the next level.
  Index reads_on() const { return fills; }
  Index writes_on() const { return write_backs + write_throughs + writes_around; }
  friend bool operator==(const LevelTraffic&, const LevelTraffic&) = default;
};

struct LevelResult {
  std::string level;
  Index line_bytes = 0;
  std::vector<LevelTraffic> tensors{};
};

// Bytes between a level and the next.
Bytes read_bytes(const LevelResult& level);
Bytes write_bytes(const LevelResult& level);

enum class Flush { at_the_end, never };

// Results nearest level first. Units of the trace are lines of the first level's size, numbered by
// address, so that line mod sets is the set. Throws ConfigError as validate(levels) does, and for a
// trace of tiles, with repeats, of another line size or of over 2^31 accesses.
std::vector<LevelResult> simulate_levels(std::span<const CacheLevel> levels,
                                         const AccessTrace& trace, Flush flush = Flush::at_the_end);

}  // namespace flashbound
