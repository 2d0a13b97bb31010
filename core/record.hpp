// The record machine: a program's events on a schedule, one by one, in order.
#pragma once

#include "core/number_format.hpp"
#include "core/program.hpp"
#include "core/program_ranges.hpp"
#include "core/schedule.hpp"
#include "core/units.hpp"

#include <functional>
#include <string>

namespace flashbound {

// One step: a kernel's begin, a tile moved, allocated or released, or a computation.
struct Event {
  const Statement* statement = nullptr;
  const TileDecl* tile = nullptr;      // moved, made resident, released or written; none: a kernel
  const TensorDecl* tensor = nullptr;  // of a load or store
  Index split = kNone;                 // of a load or store in a tensor with a split axis
  Interval rows{};                     // along the tile's row axis
  Interval cols{};
  Bytes bytes{};                             // across the HBM boundary; 0 unless a load or store
  Elements resident{};                       // in fast memory after the event
  const Environment* environment = nullptr;  // block index of each running loop
};

// Calls sink(event) for every event of one head. The event's pointers live for the call only.
// Releases at the end of a scope are events too, with a `release` statement of the tile.
void record(const Program& program, const Schedule& schedule, NumberFormat dtype,
            const std::function<void(const Event&)>& sink);

// The whole log as the JSON document of core/schemas.md.
std::string record_json(const Program& program, const Schedule& schedule, NumberFormat dtype);

}  // namespace flashbound
