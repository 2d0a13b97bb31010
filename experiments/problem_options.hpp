// From options to core's problem and tile. Contradictions are errors, never guesses.
#pragma once

#include "core/problem.hpp"
#include "experiments/options.hpp"

#include <optional>

namespace flashbound {

// Shapes that files already fix; options may repeat them but not contradict them.
struct KnownShape {
  Index batch = 0;
  Index num_heads_q = 0;
  Index num_heads_kv = 0;
  Index seqlen_q = 0;
  Index seqlen_kv = 0;
  Index head_dim = 0;
  Index head_dim_v = 0;
};

// Without `known` the lengths must be given. Validates by core's rules. Throws ConfigError, and
// IoError for files that cannot be read.
Problem problem_of(const Options& options, const std::optional<KnownShape>& known,
                   Emptiness emptiness);
Tile tile_of(const Options& options);

// "none", "causal" or "window", as the mask column says.
std::string mask_name(const Problem& problem);

}  // namespace flashbound
