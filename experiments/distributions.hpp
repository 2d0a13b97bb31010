// Named input distributions for experiments on numerics: from harmless to what makes softmax hard.
// Seeded, and by the generators of random_inputs.hpp the same on every platform.
//
// Where a name promises something of the logits, these are softmax_scale q.k: softcap, bias and
// mask come after. "First" and "last" key are those of each packed sequence. Promises hold for the
// values in fp64; rounding them to a format keeps the order of logits, but may make some equal.
#pragma once

#include "core/float_format.hpp"
#include "experiments/random_inputs.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace flashbound {

struct DistributionFacts {
  std::string_view name;
  std::string_view description;  // one line
};
std::span<const DistributionFacts> distributions();

// Throws ConfigError for a name that distributions() lacks, and for a softmax_scale of zero where
// the distribution promises different logits.
OwnedInputs distribution_inputs(std::string_view name, const Problem& problem, std::uint64_t seed);

// Rounds every value to nearest, ties to even.
void round_to(OwnedInputs& inputs, const FloatFormat& format);

}  // namespace flashbound
