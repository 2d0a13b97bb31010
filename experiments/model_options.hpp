// What the verbs that model memory share: from options to a format, a footprint, algorithms.
#pragma once

#include "core/footprint.hpp"
#include "core/number_format.hpp"
#include "core/programs.hpp"
#include "experiments/options.hpp"

#include <vector>

namespace flashbound {

// Each throws ConfigError with the allowed values.
NumberFormat dtype_of(const Options& options);
void require_hbm_boundary(const Options& options);

struct FootprintChoice {
  FootprintKind kind = FootprintKind::uniform;
  Index stages = 1;
};
FootprintChoice footprint_of(const Options& options);

// At least one byte.
Bytes sram_of(const Options& options);

// Names, or forward, backward, all; a list where `many`.
std::vector<const Algorithm*> algorithms_of(const Options& options, bool many = false);

}  // namespace flashbound
