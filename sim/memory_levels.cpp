#include "sim/memory_levels.hpp"

#include "core/errors.hpp"
#include "sim/victims.hpp"

#include <utility>

namespace flashbound {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kAccessesMax = std::size_t{1} << 31;

struct LineAccess {
  std::uint32_t line = 0;
  std::uint8_t tensor = 0;
  bool write = false;
};

std::vector<std::uint32_t> next_uses(const std::vector<LineAccess>& stream, std::size_t lines) {
  std::vector<std::uint32_t> next(stream.size());
  std::vector<std::uint32_t> seen(lines, kNone);
  for (std::size_t t = stream.size(); t-- > 0;) {
    next[t] = std::exchange(seen[stream[t].line], static_cast<std::uint32_t>(t));
  }
  return next;
}

template <class Victims>
class Cache {
 public:
  Cache(const CacheLevel& level, Victims victims, std::size_t lines, LevelResult& result,
        std::vector<LineAccess>& onward)
      : level_(level),
        victims_(std::move(victims)),
        sets_(static_cast<std::uint32_t>(level.sets())),
        ways_(static_cast<std::uint32_t>(level.set_ways())),
        slot_of_(lines, kNone),
        held_(static_cast<std::size_t>(level.sets() * level.set_ways())),
        used_(static_cast<std::size_t>(level.sets()), 0),
        result_(result),
        onward_(onward) {}

  void access(const LineAccess& access, std::uint32_t next_use) {
    LevelTraffic& traffic = of(access);
    std::uint32_t slot = slot_of_[access.line];
    const bool hit = slot != kNone;
    ++(access.write ? hit ? traffic.write_hits : traffic.write_misses
       : hit        ? traffic.read_hits
                    : traffic.read_misses);
    if (hit) {
      victims_.hit(slot, next_use);
    } else {
      if (access.write && level_.write_miss == WriteMiss::around) {
        ++traffic.writes_around;
        onward_.push_back(access);
        return;
      }
      slot = place(access.line);
      held_[slot] = {access.line, access.tensor, false};
      victims_.enter(slot, next_use);
      if (!access.write || level_.write_miss == WriteMiss::fetch) fill(access);
    }
    if (access.write) write(access, held_[slot]);
  }

  void flush() {
    for (Held& held : held_) {
      if (held.dirty) write_back(held);
    }
  }

 private:
  struct Held {
    std::uint32_t line = kNone;
    std::uint8_t tensor = 0;
    bool dirty = false;
  };

  LevelTraffic& of(const LineAccess& access) { return result_.tensors[access.tensor]; }

  // A free slot of the line's set, or one whose line leaves.
  std::uint32_t place(std::uint32_t line) {
    const std::uint32_t set = line % sets_;
    std::uint32_t slot = set * ways_ + used_[set];
    if (used_[set] < ways_) {
      ++used_[set];
    } else {
      slot = victims_.victim(set);
      slot_of_[held_[slot].line] = kNone;
      if (held_[slot].dirty) write_back(held_[slot]);
    }
    slot_of_[line] = slot;
    return slot;
  }

  void fill(const LineAccess& access) {
    ++of(access).fills;
    onward_.push_back({access.line, access.tensor, false});
  }

  void write(const LineAccess& access, Held& held) {
    if (!level_.write_through) {
      held.dirty = true;
      return;
    }
    ++of(access).write_throughs;
    onward_.push_back(access);
  }

  void write_back(Held& held) {
    ++result_.tensors[held.tensor].write_backs;
    onward_.push_back({held.line, held.tensor, true});
    held.dirty = false;
  }

  const CacheLevel& level_;
  Victims victims_;
  std::uint32_t sets_;
  std::uint32_t ways_;
  std::vector<std::uint32_t> slot_of_;  // by line
  std::vector<Held> held_;              // by slot
  std::vector<std::uint32_t> used_;     // by set: slots that hold something
  LevelResult& result_;
  std::vector<LineAccess>& onward_;
};

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

std::vector<LineAccess> stream_of(const AccessTrace& trace, Index line_bytes) {
  if (!trace.unit_lines.empty()) reject("trace", "of tiles", "one of lines");
  if (!trace.repeats.empty()) reject("trace", "with repeats", "one written out");
  if (trace.line_bytes != line_bytes) {
    reject("line_bytes", std::to_string(line_bytes),
           std::to_string(trace.line_bytes) + ", the trace's");
  }
  if (trace.accesses.size() > kAccessesMax) {
    reject("accesses", std::to_string(trace.accesses.size()), "at most 2^31");
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
    LevelResult result{.level = levels[l].name, .line_bytes = levels[l].line_bytes};
    for (const std::string& tensor : trace.tensors) result.tensors.push_back({.tensor = tensor});
    std::vector<LineAccess> onward;
    run_level(levels[l], stream, lines, flush, result, onward);
    results.push_back(std::move(result));
    stream = std::move(onward);
  }
  return results;
}

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
