#include "sim/level_traffic.hpp"

namespace flashbound {

Bytes read_bytes(const LevelResult& level) {
  Bytes bytes;
  for (const LevelTraffic& t : level.tensors) {
    bytes += Bytes(checked_mul(t.reads_on(), level.line_bytes));
  }
  return bytes;
}

Bytes write_bytes(const LevelResult& level) {
  Bytes bytes;
  for (const LevelTraffic& t : level.tensors) {
    bytes += Bytes(checked_mul(t.writes_on(), level.line_bytes));
  }
  return bytes;
}

}  // namespace flashbound
