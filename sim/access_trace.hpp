// A trace: which units of memory a program touches, in order. A unit is a line, or a whole tile of
// lines that are only ever touched together and in one order.
#pragma once

#include "core/int128.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flashbound {

struct AccessTrace {
  Index line_bytes = 0;
  std::vector<std::string> tensors{};       // in the program's order
  std::vector<std::uint8_t> unit_tensor{};  // by unit: index in `tensors`
  std::vector<std::uint32_t> unit_lines{};  // by unit: lines in it; empty: one each
  std::vector<std::uint32_t> accesses{};    // 2 * unit + (1 for a write)

  // Accesses [begin, end) stand for `times` runs in a row of the same loop body, of which they are
  // one whose distances are those of all of them. What no repeat covers counts once.
  struct Repeat {
    std::size_t begin = 0;
    std::size_t end = 0;
    Index times = 1;
    friend bool operator==(const Repeat&, const Repeat&) = default;
  };
  std::vector<Repeat> repeats{};  // in order, not overlapping

  Index unit_count() const { return static_cast<Index>(unit_tensor.size()); }
  Index lines(std::size_t unit) const { return unit_lines.empty() ? 1 : unit_lines[unit]; }

  static std::uint32_t read(std::uint32_t unit) { return 2 * unit; }
  static std::uint32_t write(std::uint32_t unit) { return 2 * unit + 1; }
};

// Units that fit in an access.
inline constexpr Index kTraceUnitsMax = Index{1} << 31;

}  // namespace flashbound
