// What a forward pass leaves for a backward one, per query head.
#pragma once

#include "core/numeric.hpp"
#include "core/problem.hpp"
#include "core/tensor.hpp"

namespace flashbound {

// From the reference's arithmetic: grad_o, o, lse, row_max, row_sum and p, everything that any
// backward program reads, in fp64. run_numeric rounds it. Rows that see nothing have o = 0, p = 0,
// row_sum = 0 (1 with a sink) and lse = row_max = -inf (the sink).
BackwardInputs backward_inputs(const Problem& problem, const Inputs& inputs,
                               const TensorView<const double>& grad_o, const Sequence& sequence,
                               Index head);

// From what a forward program computed of the same head: grad_o, and those of the above that the
// program keeps (flash2: o and lse; flash1: o, row_max and row_sum).
BackwardInputs backward_inputs(const NumericRun& forward, const Problem& problem,
                               const TensorView<const double>& grad_o, const Sequence& sequence,
                               Index head);

}  // namespace flashbound
