#include "core/io_count.hpp"

#include <algorithm>

namespace flashbound {

Bytes hbm_read_bytes(const IoCount& count) {
  Bytes total;
  for (const TensorTraffic& tensor : count.tensors) total += tensor.read_bytes();
  return total;
}

Bytes hbm_write_bytes(const IoCount& count) {
  Bytes total;
  for (const TensorTraffic& tensor : count.tensors) total += tensor.write_bytes();
  return total;
}

Bytes hbm_bytes(const IoCount& count) { return hbm_read_bytes(count) + hbm_write_bytes(count); }

Index element_bytes(Width width, NumberFormat dtype) {
  constexpr Index kStatisticBytesMin = 4;
  const Index bytes = byte_size(dtype);
  return width == Width::data ? bytes : std::max(bytes, kStatisticBytesMin);
}

}  // namespace flashbound
