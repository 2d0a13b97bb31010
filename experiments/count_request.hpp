// What a call of count asks for.
#pragma once

#include "core/footprint.hpp"
#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/programs.hpp"
#include "core/units.hpp"
#include "experiments/options.hpp"

#include <optional>
#include <vector>

namespace flashbound {

enum class CountMethod { closed_form, machine };

struct CountRequest {
  Problem problem;
  Tile tile;
  NumberFormat dtype = NumberFormat::fp16;
  FootprintKind footprint = FootprintKind::uniform;
  Index stages = 1;
  std::optional<Bytes> sram;
  std::vector<const Algorithm*> algorithms;
  std::vector<CountMethod> methods;
  bool for_people = false;  // a table: two methods that agree share a row
};

// How many blocks the machine has to visit at most: those of both axes together, times the splits.
Int128 machine_blocks(const CountRequest& request);

// Throws ConfigError, also for what would take the machine, or the kernel footprint, too long.
CountRequest count_request(const Options& options);

}  // namespace flashbound
