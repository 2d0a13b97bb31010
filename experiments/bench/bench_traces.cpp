#include "experiments/bench/bench_traces.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace flashbound {

BenchTrace flash2_lines(Index seqlen, Index block) {
  constexpr Index kLinesPerRow = 2;
  const Index matrix = kLinesPerRow * seqlen;
  const Index tile = kLinesPerRow * block;
  BenchTrace trace{.unit_count = 4 * matrix};
  const auto touch = [&](Index tensor, Index at) {
    for (Index line = 0; line < tile; ++line) {
      trace.units.push_back(static_cast<std::uint32_t>(tensor * matrix + at * tile + line));
    }
  };
  for (Index i = 0; i < seqlen / block; ++i) {
    touch(0, i);
    for (Index j = 0; j < seqlen / block; ++j) {
      touch(1, j);
      touch(2, j);
    }
    touch(3, i);
  }
  return trace;
}

BenchTrace uniform_lines(Index lines, Index touches) {
  std::mt19937_64 random(1);
  BenchTrace trace{.unit_count = lines};
  for (Index t = 0; t < touches; ++t) {
    trace.units.push_back(static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(lines)));
  }
  return trace;
}

BenchTrace zipf_lines(Index lines, Index touches) {
  std::mt19937_64 random(1);
  std::vector<double> up_to(static_cast<std::size_t>(lines));
  double sum = 0;
  for (std::size_t k = 0; k < up_to.size(); ++k) up_to[k] = sum += 1.0 / static_cast<double>(k + 1);
  std::vector<std::uint32_t> place(up_to.size());
  std::iota(place.begin(), place.end(), 0U);
  std::shuffle(place.begin(), place.end(), random);
  BenchTrace trace{.unit_count = lines};
  for (Index t = 0; t < touches; ++t) {
    const double at = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
    const auto rank = std::lower_bound(up_to.begin(), up_to.end(), at) - up_to.begin();
    trace.units.push_back(place[static_cast<std::size_t>(std::min<Index>(rank, lines - 1))]);
  }
  return trace;
}

}  // namespace flashbound
