// Traces that benchmarks and their peers share.
#pragma once

#include "core/int128.hpp"

#include <cstdint>
#include <vector>

namespace flashbound {

struct BenchTrace {
  std::vector<std::uint32_t> units{};
  Index unit_count = 0;
};

// Lines of 64 bytes that flash2 touches: fp16, d = 64, no mask, square blocks, lse left out.
BenchTrace flash2_lines(Index seqlen, Index block);
// `touches` lines, each as likely as the other, or the k-th most likely in proportion to 1 / k.
BenchTrace uniform_lines(Index lines, Index touches);
BenchTrace zipf_lines(Index lines, Index touches);

}  // namespace flashbound
