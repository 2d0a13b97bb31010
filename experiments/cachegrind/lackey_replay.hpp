// What cachegrind counts, counted again from the accesses that lackey printed.
//
// cachegrind 3.19 (cg_sim.c) has LRU everywhere; a data level and an instruction level miss into
// one last level; a write is to it what a read is, and dirty lines leave in silence. An access that
// straddles two lines touches both, first the lower one, and misses once if either does; then the
// last level is asked for both, whichever had missed. A read that its instruction writes back
// ("modify") is a read.
#pragma once

#include "experiments/cachegrind/cachegrind_counts.hpp"
#include "experiments/cachegrind/line_numbers.hpp"
#include "experiments/cachegrind/tiled_run.hpp"
#include "sim/cache.hpp"
#include "sim/victims.hpp"

#include <deque>
#include <set>
#include <string_view>
#include <vector>

namespace flashbound {

enum class AccessKind { instruction, read, write };

// Which accesses a replay takes: all, or those of the run's arrays, as if nothing else shared the
// caches with them.
enum class Replayed { everything, arrays_alone };

// Several last levels at once, each as if it were alone.
class LackeyReplay {
 public:
  // Throws ConfigError as validate(levels) does, for lines of several sizes or another policy.
  LackeyReplay(const TiledRun& run, Replayed replayed);

  void access(AccessKind kind, std::uint64_t address, Index bytes);
  // A line of lackey's output with --trace-mem=yes: "I  addr,bytes", or " L", " S", " M" before the
  // same, in hexadecimal and decimal. Says whether it was one; other lines change nothing.
  bool line(std::string_view text);

  // One for each of the run's last levels.
  const std::vector<ReplayCounts>& counts() const { return counts_; }
  Index straddling() const { return straddling_; }
  // Lines beside the arrays that the last levels were asked for while attention ran, from the first
  // touch of q_i to the last write of lse; and the most of them that share a set.
  Index foreign_lines() const { return static_cast<Index>(foreign_.size()); }
  Index foreign_lines_in_a_set(const CacheLevel& last) const;

 private:
  // A cache with the places that it counts in.
  struct Port {
    Port(const CacheLevel& level, std::uint32_t lines);
    // Touches both lines, and says whether either missed.
    bool misses(std::uint32_t line, std::uint32_t other, bool write);

    CacheLevel level;
    LevelResult result{};
    std::vector<LineAccess> onward{};
    Cache<ListVictims> cache;
  };
  void follow(const NamedArray* array, bool write);
  void ask_last_levels(AccessKind kind, const NamedArray* array, std::uint32_t line,
                       std::uint32_t other);

  const TiledRun& run_;
  Replayed replayed_;
  LineNumbers numbers_;
  std::deque<Port> ports_;  // instructions, data, last levels; ports stay where they are
  std::vector<ReplayCounts> counts_;
  Index straddling_ = 0;
  bool attending_ = false;
  std::set<std::uint32_t> foreign_{};  // until the last write of lse
  std::set<std::uint32_t> since_{};    // after it
};

}  // namespace flashbound
