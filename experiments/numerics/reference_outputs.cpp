#include "experiments/numerics/reference_outputs.hpp"

#include "core/exact.hpp"
#include "core/reference.hpp"

#include <utility>

namespace flashbound {

std::string_view name(ReferenceKind kind) {
  return kind == ReferenceKind::exact ? "exact" : "fp64";
}

std::string_view name(ReferenceInputs inputs) {
  return inputs == ReferenceInputs::rounded ? "rounded" : "unrounded";
}

ReferenceOutputs reference_outputs(ReferenceKind kind, const Problem& problem, const Inputs& inputs,
                                   const ParallelFor& parallel_for) {
  if (kind == ReferenceKind::fp64) {
    Attention plain = reference(problem, inputs, parallel_for);
    return {std::move(plain.o), std::move(plain.lse), {}, {}};
  }
  ExactAttention certified = exact(problem, inputs, {}, parallel_for);
  return {std::move(certified.o), std::move(certified.lse), std::move(certified.undecided_o),
          std::move(certified.undecided_lse)};
}

}  // namespace flashbound
