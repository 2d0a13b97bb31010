#include "experiments/cachegrind/tiled_run.hpp"

namespace flashbound {

const NamedArray* array_at(const TiledRun& run, std::uint64_t address) {
  for (const NamedArray& array : run.arrays) {
    if (address >= array.address && address - array.address < array.bytes) return &array;
  }
  return nullptr;
}

}  // namespace flashbound
