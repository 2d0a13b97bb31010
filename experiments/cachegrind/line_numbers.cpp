#include "experiments/cachegrind/line_numbers.hpp"

#include "core/errors.hpp"

#include <numeric>
#include <string>

namespace flashbound {
namespace {

constexpr Index kPeriodMax = Index{1} << 20;

}  // namespace

LineNumbers::LineNumbers(std::span<const CacheLevel> levels, std::uint32_t lines_max)
    : lines_max_(lines_max) {
  validate(levels);
  Index period = 1;
  for (const CacheLevel& level : levels) {
    if (level.line_bytes != levels[0].line_bytes) {
      reject(level.name + ".line_bytes", std::to_string(level.line_bytes),
             std::to_string(levels[0].line_bytes) + ", as at the first level");
    }
    period = std::lcm(period, level.sets());
    if (period > kPeriodMax) {
      reject(level.name + ".sets", std::to_string(level.sets()),
             "such that all levels' sets divide 2^20 or less");
    }
  }
  line_bytes_ = static_cast<std::uint64_t>(levels[0].line_bytes);
  period_ = static_cast<std::uint64_t>(period);
}

void LineNumbers::enter(std::uint64_t chunk) {
  const auto fresh = first_line_.size() * period_;
  const auto entry = first_line_.try_emplace(chunk, static_cast<std::uint32_t>(fresh));
  if (entry.second && fresh + period_ > lines_max_) {
    reject("addresses", "in over " + std::to_string(fresh) + " lines",
           "in at most " + std::to_string(lines_max_) + " lines");
  }
  last_chunk_ = chunk;
  last_first_ = entry.first->second;
}

}  // namespace flashbound
