#include "sim/weighted_lru_stack.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint32_t kNever = 0xffffffff;
constexpr std::size_t kNoRun = ~std::size_t{0};
constexpr std::size_t kGroup = 32;  // times summed one by one
constexpr std::size_t kTimesPerUnit = 4;
constexpr Index kUnitsMax = Index{1} << 28;

}  // namespace

WeightedLruStack::WeightedLruStack(std::span<const std::uint32_t> lines)
    : unit_lines_(lines.begin(), lines.end()), last_(lines.size(), kNever), run_end_(kNoRun) {
  if (static_cast<Index>(lines.size()) > kUnitsMax) {
    reject("units", std::to_string(lines.size()), "at most " + std::to_string(kUnitsMax));
  }
  at_.assign((kTimesPerUnit * lines.size() / kGroup + 1) * kGroup, 0);
  group_sums_.assign(at_.size() / kGroup + 1, 0);
}

Index WeightedLruStack::touch(std::uint32_t unit) {
  if (now_ == at_.size()) compact();
  const std::uint32_t lines = unit_lines_[unit];
  const std::uint32_t before = last_[unit];
  Index distance = 0;
  if (before == kNever) {
    live_ += lines;
    run_end_ = kNoRun;
  } else {
    // The unit touched right after the previous one was: the same distance, since what that one
    // left at the old end came back at the new one.
    distance = before == run_end_ ? run_distance_ : lines_from(before);
    run_end_ = before + 1;
    run_distance_ = distance;
    at_[before] = 0;
    add(before, -static_cast<Index>(lines));
  }
  last_[unit] = static_cast<std::uint32_t>(now_);
  at_[now_] = lines;
  add(now_, lines);
  ++now_;
  return distance;
}

void WeightedLruStack::add(std::size_t time, Index lines) {
  for (std::size_t g = time / kGroup + 1; g < group_sums_.size(); g += g & (~g + 1)) {
    group_sums_[g] += lines;
  }
}

// Lines at this time and later.
Index WeightedLruStack::lines_from(std::size_t time) const {
  Index before = 0;
  for (std::size_t g = time / kGroup; g > 0; g -= g & (~g + 1)) before += group_sums_[g];
  for (std::size_t t = time / kGroup * kGroup; t < time; ++t) before += at_[t];
  return live_ - before;
}

void WeightedLruStack::compact() {
  std::vector<std::uint32_t> unit_at(at_.size(), kNever);
  for (std::size_t u = 0; u < last_.size(); ++u) {
    if (last_[u] != kNever) unit_at[last_[u]] = static_cast<std::uint32_t>(u);
  }
  std::fill(at_.begin(), at_.end(), 0);
  std::fill(group_sums_.begin(), group_sums_.end(), 0);
  now_ = 0;
  run_end_ = kNoRun;
  for (const std::uint32_t u : unit_at) {
    if (u == kNever) continue;
    last_[u] = static_cast<std::uint32_t>(now_);
    at_[now_] = unit_lines_[u];
    add(now_, unit_lines_[u]);
    ++now_;
  }
}

}  // namespace flashbound
