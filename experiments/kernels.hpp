// Who can compute attention here.
#pragma once

#include "core/gradients.hpp"
#include "core/reference.hpp"

#include <span>
#include <string_view>

namespace flashbound {

// What of a result is certain. Only exact arithmetic leaves elements undecided (NaN in the result).
struct Certainty {
  Index undecided = 0;
  int precision_bits = 0;  // that the hardest element needed; 0 where nothing is certified
};

struct KernelOutputs {
  Attention attention;
  Certainty certainty;
};
struct KernelGradients {
  Gradients gradients;
  Certainty q, k, v;  // of each of the three
};

struct KernelSettings {
  int precision_cap = 16384;  // bits; of the kernel exact
};

struct Kernel {
  std::string_view name;  // as --kernel takes it
  std::string_view title;
  KernelOutputs (*attend)(const Problem&, const Inputs&, const KernelSettings&, const ParallelFor&);
  KernelGradients (*gradients)(const Problem&, const Inputs&,
                               const TensorView<const double>& grad_o, const KernelSettings&,
                               const ParallelFor&);
};

std::span<const Kernel> kernels();
// Throws ConfigError listing the names.
const Kernel& kernel_named(std::string_view name);

}  // namespace flashbound
