// Addresses become lines of small numbers that fall into the same cache sets.
#pragma once

#include "core/int128.hpp"
#include "sim/cache_level.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>

namespace flashbound {

// Chunks of so many lines as all levels' sets repeat after are numbered as they appear: the line's
// number modulo any level's sets is that of its address. All levels have lines of one size. Throws
// ConfigError where they have not, or repeat after over 2^20 lines only, or past `lines_max`.
class LineNumbers {
 public:
  LineNumbers(std::span<const CacheLevel> levels, std::uint32_t lines_max);

  std::uint32_t of(std::uint64_t address) {
    const std::uint64_t line = address / line_bytes_;
    const std::uint64_t chunk = line / period_;
    if (chunk != last_chunk_) enter(chunk);
    return last_first_ + static_cast<std::uint32_t>(line % period_);
  }

  // All numbers are below this.
  std::uint32_t lines_max() const { return lines_max_; }

 private:
  void enter(std::uint64_t chunk);

  std::uint64_t line_bytes_ = 1;
  std::uint64_t period_ = 1;
  std::uint32_t lines_max_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> first_line_{};  // by chunk
  std::uint64_t last_chunk_ = ~std::uint64_t{0};
  std::uint32_t last_first_ = 0;
};

}  // namespace flashbound
