#include "experiments/kernels.hpp"

#include "core/errors.hpp"
#include "core/exact.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace flashbound {
namespace {

KernelOutputs attend_reference(const Problem& problem, const Inputs& inputs,
                               const KernelSettings& /*settings*/,
                               const ParallelFor& parallel_for) {
  return {reference(problem, inputs, parallel_for), {}};
}

KernelGradients gradients_of_reference(const Problem& problem, const Inputs& inputs,
                                       const TensorView<const double>& grad_o,
                                       const KernelSettings& /*settings*/,
                                       const ParallelFor& parallel_for) {
  return {reference_gradients(problem, inputs, grad_o, parallel_for), {}, {}, {}};
}

KernelOutputs attend_exact(const Problem& problem, const Inputs& inputs,
                           const KernelSettings& settings, const ParallelFor& parallel_for) {
  const ExactOptions options{.precision_cap = settings.precision_cap};
  ExactAttention result = exact(problem, inputs, options, parallel_for);
  const std::size_t undecided = result.undecided_o.size() + result.undecided_lse.size();
  return {{std::move(result.o), std::move(result.lse)},
          {static_cast<Index>(undecided), result.precision}};
}

KernelGradients gradients_exactly(const Problem& problem, const Inputs& inputs,
                                  const TensorView<const double>& grad_o,
                                  const KernelSettings& settings, const ParallelFor& parallel_for) {
  const ExactOptions options{.precision_cap = settings.precision_cap};
  ExactGradients result = exact_gradients(problem, inputs, grad_o, options, parallel_for);
  const auto certainty = [&](const std::vector<Index>& undecided) {
    return Certainty{static_cast<Index>(undecided.size()), result.precision};
  };
  return {std::move(result.gradients), certainty(result.undecided_q), certainty(result.undecided_k),
          certainty(result.undecided_v)};
}

constexpr std::array<Kernel, 2> kKernels{{
    {"reference", "fp64, two-pass softmax, straight from the definition", attend_reference,
     gradients_of_reference},
    {"exact", "correctly rounded to fp64 and certified, by ball arithmetic", attend_exact,
     gradients_exactly},
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
