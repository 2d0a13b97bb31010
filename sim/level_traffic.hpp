// What one cache of a row saw and passed on.
#pragma once

#include "core/int128.hpp"
#include "core/units.hpp"

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

}  // namespace flashbound
