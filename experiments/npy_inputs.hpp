// Q, K and V from the files that --q, --k and --v name.
#pragma once

#include "core/tensor.hpp"
#include "experiments/npy.hpp"
#include "experiments/options.hpp"
#include "experiments/problem_options.hpp"

namespace flashbound {

struct NpyInputs {
  OwnedInputs inputs;
  NpyType type = NpyType::f8;  // of all three
};

// Throws ConfigError, also where the types differ, and IoError for files that cannot be read.
NpyInputs read_npy_inputs(const Options& options);

// dO from the file that --grad-o names: of Q's type, and of O's shape where those of Q and V are
// `inputs`. Throws as read_npy_inputs does.
Tensor<double> read_npy_grad_o(const Options& options, const NpyInputs& inputs);

// The shape that the three agree on. Throws ConfigError naming the axis where they do not.
KnownShape shape_of(const OwnedInputs& inputs);

}  // namespace flashbound
