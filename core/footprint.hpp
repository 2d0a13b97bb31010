// How many bytes of fast memory a program needs, by two definitions that are never mixed:
//   uniform  residency from tile lifetimes, every number one word of dtype: what theory calls M.
//   kernel   buffers as a kernel declares them: one for each tile for the whole kernel, full blocks
//            even where the last is ragged, 32-bit (or wider) scores, statistics and accumulators,
//            and `stages` buffers for operands loaded inside a loop.
// The steps from one to the other are itemised, and none is negative.
#pragma once

#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/program.hpp"
#include "core/units.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flashbound {

enum class FootprintKind { uniform, kernel };

struct FootprintBuffer {
  std::string kernel;
  std::string name;
  Index rows = 0;
  Index cols = 0;
  Index copies = 1;  // copies of the tile times stages
  Index element_bytes = 0;
  Bytes bytes{};
};

struct Footprint {
  Bytes residency{};         // the uniform footprint
  Bytes unshared_buffers{};  // + tiles that are not alive together do not share memory
  Bytes ragged_padding{};    // + blocks of full size
  Bytes wider_elements{};    // + scores, statistics, accumulators in at least 32 bits
  Bytes pipeline_stages{};   // + more than one buffer for operands in flight
  Bytes kernel_total() const {
    return residency + unshared_buffers + ragged_padding + wider_elements + pipeline_stages;
  }
  std::vector<FootprintBuffer> buffers;  // of the kernel footprint's largest kernel
};

// The bytes that the chosen definition asks for.
Bytes required_bytes(const Footprint& footprint, FootprintKind kind);

// Of one head; where sequences differ in length, of the one that needs most by `kind`.
Footprint footprint(const Program& program, const Problem& problem, const Tile& tile,
                    NumberFormat dtype, FootprintKind kind = FootprintKind::uniform,
                    Index stages = 1);

// Footprint::kernel_total() of one head of the schedule, without the steps that lead to it and
// without walking the blocks of any program in programs.hpp.
Bytes kernel_footprint(const Program& program, const Schedule& schedule, NumberFormat dtype,
                       Index stages);

// "requires R bytes of fast memory (uniform), M available" when it does not fit, else nullopt.
std::optional<std::string> infeasible_reason(Bytes required, Bytes available, FootprintKind kind);

std::string_view name(FootprintKind kind);

}  // namespace flashbound
