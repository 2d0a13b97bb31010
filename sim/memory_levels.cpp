#include "sim/memory_levels.hpp"

#include "core/errors.hpp"
#include "sim/cache.hpp"
#include "sim/victims.hpp"

#include <utility>

namespace flashbound {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kAccessesMax = std::size_t{1} << 31;

std::vector<std::uint32_t> next_uses(const std::vector<LineAccess>& stream, std::size_t lines) {
  std::vector<std::uint32_t> next(stream.size());
  std::vector<std::uint32_t> seen(lines, kNone);
  for (std::size_t t = stream.size(); t-- > 0;) {
    next[t] = std::exchange(seen[stream[t].line], static_cast<std::uint32_t>(t));
  }
  return next;
}

template <class Victims>
void run(const CacheLevel& level, Victims victims, const std::vector<LineAccess>& stream,
         std::size_t lines, Flush flush, LevelResult& result, std::vector<LineAccess>& onward) {
  Cache<Victims> cache(level, std::move(victims), lines, result, onward);
  std::vector<std::uint32_t> next;
  if (level.policy == Replacement::opt) next = next_uses(stream, lines);
  for (std::size_t t = 0; t < stream.size(); ++t) {
    cache.access(stream[t], next.empty() ? 0 : next[t]);
  }
  if (flush == Flush::at_the_end) cache.flush();
}

void run_level(const CacheLevel& level, const std::vector<LineAccess>& stream, std::size_t lines,
               Flush flush, LevelResult& result, std::vector<LineAccess>& onward) {
  const auto with = [&](auto victims) {
    run(level, std::move(victims), stream, lines, flush, result, onward);
  };
  const Index sets = level.sets();
  const Index ways = level.set_ways();
  switch (level.policy) {
    case Replacement::lru: return with(ListVictims(sets, ways, true));
    case Replacement::fifo: return with(ListVictims(sets, ways, false));
    case Replacement::random: return with(RandomVictims(ways, level.seed));
    case Replacement::plru: return with(TreeVictims(sets, ways));
    case Replacement::opt: return with(LatestVictims(sets, ways));
  }
}

// Times must fit next_uses, and a level may pass on two accesses for each of its own.
void validate_length(const std::vector<LineAccess>& stream, const std::string& level) {
  if (stream.size() > kAccessesMax) {
    reject(level + ".accesses", std::to_string(stream.size()), "at most 2^31");
  }
}

std::vector<LineAccess> stream_of(const AccessTrace& trace, Index line_bytes) {
  if (!trace.unit_lines.empty()) reject("trace", "of tiles", "one of lines");
  if (!trace.repeats.empty()) reject("trace", "with repeats", "one written out");
  if (trace.line_bytes != line_bytes) {
    reject("line_bytes", std::to_string(line_bytes),
           std::to_string(trace.line_bytes) + ", the trace's");
  }
  std::vector<LineAccess> stream;
  stream.reserve(trace.accesses.size());
  for (const std::uint32_t access : trace.accesses) {
    stream.push_back({access / 2, trace.unit_tensor[access / 2], access % 2 != 0});
  }
  return stream;
}

}  // namespace

std::vector<LevelResult> simulate_levels(std::span<const CacheLevel> levels,
                                         const AccessTrace& trace, Flush flush) {
  validate(levels);
  std::vector<LineAccess> stream = stream_of(trace, levels[0].line_bytes);
  auto lines = static_cast<std::size_t>(trace.unit_count());
  std::vector<LevelResult> results;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    if (l > 0) {
      const auto ratio =
          static_cast<std::uint32_t>(levels[l].line_bytes / levels[l - 1].line_bytes);
      for (LineAccess& access : stream) access.line /= ratio;
      lines = lines / ratio + 1;
    }
    validate_length(stream, levels[l].name);
    LevelResult result{.level = levels[l].name, .line_bytes = levels[l].line_bytes};
    for (const std::string& tensor : trace.tensors) result.tensors.push_back({.tensor = tensor});
    std::vector<LineAccess> onward;
    run_level(levels[l], stream, lines, flush, result, onward);
    results.push_back(std::move(result));
    stream = std::move(onward);
  }
  return results;
}

}  // namespace flashbound
