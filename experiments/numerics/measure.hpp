// The error of one run: a program in the arithmetic of a recipe, over all heads of all sequences,
// against a reference.
#pragma once

#include "core/error_metrics.hpp"
#include "core/numeric_events.hpp"
#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/program.hpp"
#include "core/recipe.hpp"
#include "core/tensor.hpp"
#include "experiments/numerics/reference_outputs.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace flashbound {

struct MeasuredRun {
  const Program* program = nullptr;
  const Problem* problem = nullptr;
  Tile tile{};
  const Recipe* recipe = nullptr;
  const OwnedInputs* inputs = nullptr;  // as given
  std::uint64_t seed = 0;
  ReferenceKind reference = ReferenceKind::exact;
  ReferenceInputs reference_inputs = ReferenceInputs::rounded;
};

// The last reference that was computed, so that runs in a row on equal inputs share it.
struct KeptReference {
  bool filled = false;
  ReferenceKind kind = ReferenceKind::exact;
  Problem problem{};
  OwnedInputs inputs{};
  ReferenceOutputs outputs{};
};

struct Measurement {
  ErrorMetrics o;          // of every element that is not undecided; ulps of `stored`
  ErrorMetrics o_per_row;  // of one element a row, whose column differs from row to row and not
                           // with the data: for sign tests, see core/error_metrics.hpp
  std::optional<ErrorMetrics> lse;  // ulps of `statistics`; where the program keeps what it takes
  Index undecided_o = 0;
  Index undecided_lse = 0;
  RescaleCount rescales{};
  std::optional<RangeEvents> range;  // where the recipe's arithmetic counts them
  // Where a bound is derived for the recipe and the reference has the run's own inputs. Includes
  // that of an fp64 reference. 0 where there are no elements.
  std::optional<double> bound_max;
  // The largest error / bound; infinite where a value is not finite although the bound is.
  std::optional<double> ratio_to_bound;
};

// The number of heads that measure() runs, one a part of the work.
Index head_count(const Problem& problem);

// The same result whatever runs the parts. `finished_head` is called, on any thread, when a head
// has run. Throws ConfigError where the recipe cannot take the problem.
Measurement measure(const MeasuredRun& run, KeptReference& kept, const ParallelFor& parallel_for,
                    const std::function<void()>& finished_head);

}  // namespace flashbound
