#include "experiments/cachegrind/lackey_replay.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint32_t kLinesMax = std::uint32_t{1} << 20;  // 64 MiB of lines of 64 bytes

std::vector<CacheLevel> all_levels(const TiledRun& run) {
  std::vector<CacheLevel> levels{run.instructions, run.data};
  levels.insert(levels.end(), run.last.begin(), run.last.end());
  return levels;
}

CachegrindCount& of(CachegrindCounts& counts, AccessKind kind) {
  return kind == AccessKind::instruction ? counts.instructions
         : kind == AccessKind::read      ? counts.reads
                                         : counts.writes;
}

// Outside attention tensors are only touched the other way: filled, or read for the checksum.
bool in_attention(const std::string& array, AccessKind kind) {
  if (array == "q" || array == "k" || array == "v") return kind == AccessKind::read;
  if (array == "o" || array == "lse") return kind == AccessKind::write;
  return true;
}

}  // namespace

LackeyReplay::Port::Port(const CacheLevel& level_of_port, std::uint32_t lines)
    : level(level_of_port),
      result{.level = level.name, .line_bytes = level.line_bytes, .tensors = {{.tensor = "any"}}},
      cache(level, ListVictims(level.sets(), level.set_ways(), true), lines, result, onward) {}

bool LackeyReplay::Port::misses(std::uint32_t line, std::uint32_t other, bool write) {
  bool hit = cache.access({.line = line, .write = write});
  if (other != line) hit = cache.access({.line = other, .write = write}) && hit;
  onward.clear();
  return !hit;
}

LackeyReplay::LackeyReplay(const TiledRun& run, Replayed replayed)
    : run_(run),
      replayed_(replayed),
      numbers_(all_levels(run), kLinesMax),
      counts_(run.last.size()) {
  for (const CacheLevel& level : all_levels(run)) {
    if (level.policy != Replacement::lru) {
      reject(level.name + ".policy", std::string(name(level.policy)), "lru, as in cachegrind");
    }
    ports_.emplace_back(level, numbers_.lines_max());
  }
  for (ReplayCounts& count : counts_) {
    for (const NamedArray& array : run.arrays) count.arrays[array.name] = 0;
  }
}

void LackeyReplay::follow(const NamedArray* array, bool write) {
  if (array == nullptr) return;
  if (array->name == "q_i") attending_ = true;
  if (array->name == "lse" && write) foreign_.merge(since_);
}

void LackeyReplay::access(AccessKind kind, std::uint64_t address, Index bytes) {
  const NamedArray* array = kind == AccessKind::instruction ? nullptr : array_at(run_, address);
  if (array == nullptr && replayed_ == Replayed::arrays_alone) return;
  const bool write = kind == AccessKind::write;
  follow(array, write);
  // cachegrind cuts longer accesses (of saved processor states) to a line.
  const Index cut = std::min(bytes, run_.data.line_bytes);
  const std::uint32_t line = numbers_.of(address);
  const std::uint32_t other = numbers_.of(address + static_cast<std::uint64_t>(cut) - 1);
  if (line != other) ++straddling_;
  for (ReplayCounts& count : counts_) ++of(count.all, kind).accesses;
  if (ports_[kind == AccessKind::instruction ? 0 : 1].misses(line, other, write)) {
    ask_last_levels(kind, array, line, other);
  }
}

void LackeyReplay::ask_last_levels(AccessKind kind, const NamedArray* array, std::uint32_t line,
                                   std::uint32_t other) {
  if (array == nullptr && attending_) since_.insert({line, other});
  for (std::size_t l = 0; l < counts_.size(); ++l) {
    CachegrindCount& count = of(counts_[l].all, kind);
    ++count.first_misses;
    if (!ports_[l + 2].misses(line, other, kind == AccessKind::write)) continue;
    ++count.last_misses;
    if (array != nullptr && in_attention(array->name, kind)) ++counts_[l].arrays[array->name];
  }
}

Index LackeyReplay::foreign_lines_in_a_set(const CacheLevel& last) const {
  std::vector<Index> in_set(static_cast<std::size_t>(last.sets()), 0);
  for (const std::uint32_t line : foreign_) ++in_set[line % in_set.size()];
  return *std::max_element(in_set.begin(), in_set.end());
}

bool LackeyReplay::line(std::string_view text) {
  const std::string_view mark = text.substr(0, 3);
  AccessKind kind = AccessKind::read;
  if (mark == "I  ") {
    kind = AccessKind::instruction;
  } else if (mark == " S ") {
    kind = AccessKind::write;
  } else if (mark != " L " && mark != " M ") {
    return false;
  }
  std::uint64_t address = 0;
  Index bytes = 0;
  const char* const end = text.data() + text.size();
  const auto comma = std::from_chars(text.data() + 3, end, address, 16);
  if (comma.ec != std::errc{} || comma.ptr == end || *comma.ptr != ',') return false;
  const auto rest = std::from_chars(comma.ptr + 1, end, bytes);
  if (rest.ec != std::errc{} || rest.ptr != end || bytes < 1) return false;
  access(kind, address, bytes);
  return true;
}

}  // namespace flashbound
