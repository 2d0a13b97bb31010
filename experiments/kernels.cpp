#include "experiments/kernels.hpp"

#include "core/errors.hpp"

#include <array>
#include <string>

namespace flashbound {
namespace {

constexpr std::array<Kernel, 1> kKernels{{
    {"reference", "fp64, two-pass softmax, straight from the definition", reference},
}};

}  // namespace

std::span<const Kernel> kernels() { return kKernels; }

const Kernel& kernel_named(std::string_view name) {
  std::string names;
  for (const Kernel& kernel : kKernels) {
    if (kernel.name == name) return kernel;
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  }
  reject("kernel", std::string(name), "one of " + names);
}

}  // namespace flashbound
