// A product of options too large to hold: points are numbered, and made when they are asked for.
#pragma once

#include "core/int128.hpp"
#include "experiments/options.hpp"

#include <string>
#include <vector>

namespace flashbound {

inline constexpr Index kSweepPointsMax = Index{1} << 40;
inline constexpr Index kShardsMax = 1 << 20;

struct SweepAxis {
  std::string option;
  std::vector<std::string> values;
};

// Which of the points a process takes: those with number = index (mod count).
struct Shard {
  Index index = 0;
  Index count = 1;
};

// How many of so many points a shard takes.
constexpr Index points_of_shard(Index points, const Shard& shard) {
  return points <= shard.index ? 0 : (points - shard.index - 1) / shard.count + 1;
}

struct SweepPlan {
  Options base;                   // of the verb that is swept; every axis at its first value
  std::vector<SweepAxis> axes{};  // in the order of the option table, the first varies slowest
  Index points = 1;
  Shard shard{};

  // Points of the shard, and the number of the n-th of them.
  Index own_points() const { return points_of_shard(points, shard); }
  Index own_point(Index n) const { return shard.index + n * shard.count; }
};

// From the options of the verb sweep. Refuses, before anything runs, an option that the swept verb
// does not take and a bad value anywhere in a list. Throws ConfigError.
SweepPlan sweep_plan(const Options& options);

// Sets the axes of `options`, a copy of plan.base, to those of a point.
void set_point(const SweepPlan& plan, Index point, Options& options);

// The configuration as one JSON object, equal for equal sweeps: verb, options, axes.
std::string sweep_config_json(const SweepPlan& plan);

}  // namespace flashbound
