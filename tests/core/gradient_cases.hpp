// Failure cases of other libraries' backward passes, as data for the reference and for the
// programs. The ids are those of attention_cases.hpp; sizes that did not matter are cut.
//
//   not here   why
//   A28        repeated runs are bit-equal: gradients_test.cpp
//   A42        dropout, whose gradients lacked 1 / (1 - p): the core has none
#pragma once

#include "core/problem.hpp"
#include "experiments/random_inputs.hpp"

#include <vector>

namespace flashbound::testing {

struct GradientCase {
  const char* id = "";
  Problem problem{};
  double input_size = 1;  // standard deviation of Q, K, V and dO
};

std::vector<GradientCase> gradient_cases();

// Q, K, V and dO of a case, exact in fp32.
struct GradientOperands {
  OwnedInputs inputs;
  Tensor<double> grad_o;
};
GradientOperands operands_of(const GradientCase& gradient_case);

}  // namespace flashbound::testing
