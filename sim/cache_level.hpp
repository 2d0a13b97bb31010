// One level of a row of caches: its geometry and its rules.
#pragma once

#include "core/int128.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace flashbound {

enum class Replacement {
  lru,     // out goes what was accessed longest ago
  fifo,    // what came in longest ago
  random,  // any, by a seeded generator
  plru,    // tree-PLRU: bits of a binary tree point away from what was accessed
  opt,     // what is accessed again last (Belady 1966), given the future of this level's stream
};

// What a write miss does. Programs write whole tiles, so that nothing has to be fetched first.
enum class WriteMiss {
  allocate,  // the line comes in without being fetched
  fetch,     // the line is fetched, then written
  around,    // the write goes to the next level, and nothing comes in
};

struct CacheLevel {
  std::string name = "cache";
  Bytes capacity{};
  Index line_bytes = 64;  // a power of two, a multiple of that of the level before
  Index ways = 0;         // 0: fully associative
  Replacement policy = Replacement::lru;
  bool write_through = false;  // a write hit goes to the next level and leaves the line clean
  WriteMiss write_miss = WriteMiss::allocate;
  std::uint64_t seed = 1;  // of random

  // Set-associative levels have any whole number of sets. A fully associative one has as many lines
  // as fit; what is left of its capacity holds nothing.
  Index lines() const { return static_cast<Index>(capacity.value() / line_bytes); }
  Index set_ways() const { return ways == 0 ? lines() : ways; }
  Index sets() const { return lines() / set_ways(); }
  Bytes unused() const { return capacity - Bytes(Int128{lines()} * line_bytes); }
};

// Throws ConfigError naming the level, the field, its value and the allowed range.
void validate(std::span<const CacheLevel> levels);

std::string_view name(Replacement policy);
std::optional<Replacement> replacement_named(std::string_view name);

}  // namespace flashbound
