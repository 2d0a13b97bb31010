#include "sim/cache_level.hpp"

#include "core/errors.hpp"

#include <array>
#include <bit>

namespace flashbound {
namespace {

constexpr Index kLinesMax = Index{1} << 28;  // about 8 GB of state
constexpr Index kLineBytesMax = Index{1} << 20;

bool power_of_two(Index value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}

void validate_geometry(const CacheLevel& level) {
  const auto field = [&](const char* what) { return level.name + "." + what; };
  if (!power_of_two(level.line_bytes) || level.line_bytes > kLineBytesMax) {
    reject(field("line_bytes"), std::to_string(level.line_bytes),
           "a power of two from 1 to " + std::to_string(kLineBytesMax));
  }
  const Int128 lines = level.capacity.value() / level.line_bytes;
  if (lines < 1 || lines > kLinesMax) {
    reject(field("capacity"), to_string(level.capacity),
           "1 to " + std::to_string(kLinesMax) + " lines of " + std::to_string(level.line_bytes) +
               " bytes");
  }
  if (level.ways < 0 || level.ways > lines) {
    reject(field("ways"), std::to_string(level.ways),
           "0 (fully associative) to " + to_decimal(lines) + " lines");
  }
  const Int128 set_bytes = Int128{level.set_ways()} * level.line_bytes;
  if (level.ways > 0 && level.capacity.value() % set_bytes != 0) {
    reject(field("capacity"), to_string(level.capacity),
           "a multiple of ways x line_bytes = " + to_decimal(set_bytes));
  }
  if (level.policy == Replacement::plru && !power_of_two(level.set_ways())) {
    reject(field("ways"), std::to_string(level.set_ways()), "a power of two with plru");
  }
}

struct Named {
  Replacement policy;
  std::string_view name;
};
constexpr std::array<Named, 5> kNames{{{Replacement::lru, "lru"},
                                       {Replacement::fifo, "fifo"},
                                       {Replacement::random, "random"},
                                       {Replacement::plru, "plru"},
                                       {Replacement::opt, "opt"}}};

}  // namespace

void validate(std::span<const CacheLevel> levels) {
  if (levels.empty()) reject("levels", "0", "at least 1");
  for (std::size_t l = 0; l < levels.size(); ++l) {
    validate_geometry(levels[l]);
    if (l > 0 && levels[l].line_bytes % levels[l - 1].line_bytes != 0) {
      reject(levels[l].name + ".line_bytes", std::to_string(levels[l].line_bytes),
             "a multiple of the level before's, " + std::to_string(levels[l - 1].line_bytes));
    }
  }
}

std::string_view name(Replacement policy) {
  for (const Named& named : kNames) {
    if (named.policy == policy) return named.name;
  }
  return "";
}

std::optional<Replacement> replacement_named(std::string_view name) {
  for (const Named& named : kNames) {
    if (named.name == name) return named.policy;
  }
  return std::nullopt;
}

}  // namespace flashbound
