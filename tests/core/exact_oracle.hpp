// Attention and its gradients by the definition, pair by pair in long ball arithmetic, without the
// core's schedule or mask and without any grouping: an oracle for core/exact.hpp.
#pragma once

#include "core/problem.hpp"
#include "core/tensor.hpp"

#include <vector>

namespace flashbound::testing {

// Correctly rounded if numbers nearer than 2^-200 to zero or (of their size) to a boundary between
// doubles are on it, as holds for random data. NaN where the precision is too low.
struct LongAttention {
  Tensor<double> o, lse;
};
LongAttention long_attention(const Problem& problem, const Inputs& inputs, Index precision);

struct LongGradients {
  Tensor<double> q, k, v;
};
LongGradients long_gradients(const Problem& problem, const Inputs& inputs,
                             const TensorView<const double>& grad_o, Index precision);

// (O of `plus` - O of `minus`) . grad_o / (2 step), nearly without rounding: for central
// differences in long arithmetic.
double difference_quotient(const Problem& problem, const Inputs& plus, const Inputs& minus,
                           const TensorView<const double>& grad_o, double step, Index precision);

}  // namespace flashbound::testing
