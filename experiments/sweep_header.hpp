// The first and last lines of a sweep's result file.
#pragma once

#include "experiments/sweep_plan.hpp"

#include <optional>
#include <string>

namespace flashbound {

// What a first line says. `config` is JSON text as it stands there.
struct SweepHeader {
  std::string version;
  std::string config;
  Index points = 0;
  Shard shard{};
};

// Without their line feeds.
std::string header_line(const SweepHeader& header);
std::string trailer_line(Index own_points);

SweepHeader header_of(const SweepPlan& plan);

// nullopt for a line that is no header, or holds what none can: 1 <= index <= count <= 2^20,
// 0 <= points <= 2^40.
std::optional<SweepHeader> parse_header(const std::string& line);

// The first member in which two differ, with both values; empty where they are equal.
std::string difference(const SweepHeader& wanted, const SweepHeader& found);

}  // namespace flashbound
