// Computed gradients against their bounds: the largest share of what is allowed, above 1 (infinite
// where nothing is allowed, as for rows that see no key and keys that nobody sees).
#pragma once

#include "core/gradients.hpp"
#include "core/numeric.hpp"
#include "tests/core/gradient_oracle.hpp"

namespace flashbound::testing {

// Gradients computed in fp64, or better, against the definition, all heads.
double gradients_share(const Problem& problem, const Inputs& inputs,
                       const TensorView<const double>& grad_o, const Gradients& computed);
// Reference gradients against the definition, all heads.
double reference_share(const Problem& problem, const Inputs& inputs,
                       const TensorView<const double>& grad_o);

// One head of one sequence.
struct HeadTarget {
  const Problem& problem;
  Inputs inputs;
  TensorView<const double> grad_o;
  Sequence at{};
  Index head = 0;
};

// A backward program's gradients against the reference's. `updates` as for oracle_gradients().
double program_share(const HeadTarget& target, const NumericRun& run, NumberFormat format,
                     Index updates = 0);

}  // namespace flashbound::testing
