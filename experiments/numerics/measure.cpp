#include "experiments/numerics/measure.hpp"

#include "core/error_bound.hpp"
#include "core/numeric.hpp"
#include "core/quantization.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace flashbound {
namespace {

// Seeds of heads, apart from the first ones of the same seed, which choose signs of a rotation.
constexpr std::uint64_t kHeadSeeds = std::uint64_t{1} << 32;

// What the heads of a run left, in tensors of the reference's shapes.
struct Computed {
  Tensor<double> o;
  Tensor<double> lse;
  std::vector<NumericRun> heads;  // without their outputs
  bool has_lse = true;
};

struct HeadPlace {
  Sequence sequence{};
  Index head = 0;
};

HeadPlace place_of(const Problem& problem, Index part) {
  return {sequence(problem, part / problem.num_heads_q), part % problem.num_heads_q};
}

// Bit for bit, so that NaN equals itself.
bool same(const Tensor<double>& a, const Tensor<double>& b) {
  return a.shape == b.shape &&
         std::memcmp(a.elements.data(), b.elements.data(), a.elements.size() * sizeof(double)) == 0;
}

void refresh(KeptReference& kept, const MeasuredRun& run, const OwnedInputs& rounded,
             const ParallelFor& parallel_for) {
  const bool unrounded = run.reference_inputs == ReferenceInputs::unrounded;
  const OwnedInputs& inputs = unrounded ? *run.inputs : rounded;
  const bool fits = kept.filled && kept.kind == run.reference && kept.problem == *run.problem &&
                    same(kept.inputs.q, inputs.q) && same(kept.inputs.k, inputs.k) &&
                    same(kept.inputs.v, inputs.v);
  if (fits) return;
  kept.filled = false;  // what follows may throw
  kept.kind = run.reference;
  kept.problem = *run.problem;
  kept.inputs = inputs;
  kept.outputs = reference_outputs(kept.kind, kept.problem, kept.inputs.view(), parallel_for);
  kept.filled = true;
}

void take_head(const Problem& problem, const HeadPlace& place, NumericRun& run,
               Computed& computed) {
  const HeadTensor& o = *run.find("o");
  const TensorView<double> to = computed.o.view();
  const TensorView<double> lse_to = computed.lse.view();
  const Sequence& at = place.sequence;
  for (Index row = 0; row < o.rows; ++row) {
    for (Index col = 0; col < problem.head_dim_v; ++col) {
      to(at.batch, place.head, at.q_begin + row, col) = o(row, col);
    }
    const std::optional<double> lse = run.lse(row);
    if (lse) lse_to(at.batch, place.head, at.q_begin + row, 0) = *lse;
  }
}

Computed compute(const MeasuredRun& run, const OwnedInputs& rounded,
                 const ParallelFor& parallel_for, const std::function<void()>& finished_head) {
  const Problem& p = *run.problem;
  const Index parts = head_count(p);
  Computed computed;
  computed.o = Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
  computed.lse = Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, 1});
  computed.heads.resize(static_cast<std::size_t>(parts));
  std::vector<char> has_lse(static_cast<std::size_t>(parts), 0);
  parallel_for(parts, [&](Index part) {
    const HeadPlace place = place_of(p, part);
    const std::uint64_t seed = random_bits(run.seed, kHeadSeeds + static_cast<std::uint64_t>(part));
    NumericRun& head = computed.heads[static_cast<std::size_t>(part)];
    head = run_numeric(*run.program, p, run.tile, rounded.view(), place.sequence, place.head,
                       *run.recipe, seed);
    has_lse[static_cast<std::size_t>(part)] = head.keeps_lse() ? 1 : 0;
    take_head(p, place, head, computed);
    head.outputs.clear();
    finished_head();
  });
  computed.has_lse = std::count(has_lse.begin(), has_lse.end(), 0) == 0;
  return computed;
}

// Calls visit(index) for the elements that are not undecided.
template <class Visit>
void for_each_decided(std::size_t count, const std::vector<Index>& undecided, const Visit& visit) {
  auto skip = undecided.begin();
  for (std::size_t i = 0; i < count; ++i) {
    if (skip != undecided.end() && static_cast<std::size_t>(*skip) == i) {
      ++skip;
    } else {
      visit(i);
    }
  }
}

struct Pairs {
  std::vector<double> computed;
  std::vector<double> reference;
};

// Pairs of decided elements for which keep(index) holds.
template <class Keep>
Pairs pairs_of(const Tensor<double>& computed, const Tensor<double>& reference,
               const std::vector<Index>& undecided, const Keep& keep) {
  Pairs pairs;
  for_each_decided(computed.elements.size(), undecided, [&](std::size_t i) {
    if (!keep(i)) return;
    pairs.computed.push_back(computed.elements[i]);
    pairs.reference.push_back(reference.elements[i]);
  });
  return pairs;
}

ErrorMetrics metrics_of(const Pairs& pairs, const FloatFormat& format) {
  return error_metrics(pairs.computed, pairs.reference, format);
}

// One element of a row: which one must not depend on the data, and neighbours should differ, since
// rows with the same keys share the errors of one column's values.
bool is_chosen(std::size_t index, std::size_t head_dim_v) {
  return index % head_dim_v == (index / head_dim_v) % head_dim_v;
}

double ratio_of(double computed, double reference, double bound) {
  const bool agree = computed == reference || (std::isnan(computed) && std::isnan(reference));
  if (agree) return 0;
  const double error = std::abs(computed - reference);
  return std::isnan(error) || bound == 0 ? std::numeric_limits<double>::infinity() : error / bound;
}

// nullopt where no bound is derived for the recipe, whatever the sequence.
std::optional<RoundingModel> rounding_of(const MeasuredRun& run, const Sequence& sequence) {
  return program_rounding(*run.recipe, *run.program,
                          schedule_for(*run.problem, run.tile, sequence));
}

// The bound of every element of O, in its tensor's shape.
Tensor<double> bounds(const MeasuredRun& run, const OwnedInputs& rounded,
                      const ParallelFor& parallel_for) {
  const Problem& p = *run.problem;
  Tensor<double> result({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
  const TensorView<double> to = result.view();
  parallel_for(head_count(p), [&](Index part) {
    const HeadPlace place = place_of(p, part);
    const Sequence& at = place.sequence;
    const HeadConditions conditions = head_conditions(p, rounded.view(), at, place.head);
    RowMatrix bound = error_bound(conditions, rounding_of(run, at).value()).o;
    if (run.reference == ReferenceKind::fp64) {
      bound += error_bound(conditions, reference_rounding()).o;
    }
    for (Index row = 0; row < bound.rows(); ++row) {
      for (Index col = 0; col < bound.cols(); ++col) {
        to(at.batch, place.head, at.q_begin + row, col) = bound(row, col);
      }
    }
  });
  return result;
}

void compare_with_bound(const Tensor<double>& bound, const Computed& computed,
                        const ReferenceOutputs& reference, Measurement& result) {
  double largest = 0;
  std::optional<double> ratio;
  for_each_decided(bound.elements.size(), reference.undecided_o, [&](std::size_t i) {
    largest = std::max(largest, bound.elements[i]);
    if (std::isinf(bound.elements[i])) return;  // which promises nothing
    ratio = std::max(ratio.value_or(0),
                     ratio_of(computed.o.elements[i], reference.o.elements[i], bound.elements[i]));
  });
  result.bound_max = largest;
  result.ratio_to_bound = ratio;  // missing where no element has a finite bound
}

void sum_events(const MeasuredRun& run, const Computed& computed, Measurement& result) {
  RangeEvents range;
  for (const NumericRun& head : computed.heads) {
    result.rescales.done += head.rescales.done;
    result.rescales.skipped += head.rescales.skipped;
    range.overflows += head.range.overflows;
    range.underflows += head.range.underflows;
  }
  // A library's sums are those of the recipes fp64 and fp32.
  if (run.recipe->values_product.order != SumOrder::any) result.range = range;
}

}  // namespace

Index head_count(const Problem& problem) { return sequence_count(problem) * problem.num_heads_q; }

Measurement measure(const MeasuredRun& run, KeptReference& kept, const ParallelFor& parallel_for,
                    const std::function<void()>& finished_head) {
  const OwnedInputs rounded =
      rounded_inputs(*run.recipe, *run.problem, run.inputs->view(), run.seed);
  const Computed computed = compute(run, rounded, parallel_for, finished_head);
  refresh(kept, run, rounded, parallel_for);
  const ReferenceOutputs& reference = kept.outputs;

  Measurement result;
  const auto every = [](std::size_t) { return true; };
  const auto head_dim_v = static_cast<std::size_t>(run.problem->head_dim_v);
  const auto chosen = [&](std::size_t i) { return is_chosen(i, head_dim_v); };
  result.o = metrics_of(pairs_of(computed.o, reference.o, reference.undecided_o, every),
                        run.recipe->stored);
  result.o_per_row = metrics_of(pairs_of(computed.o, reference.o, reference.undecided_o, chosen),
                                run.recipe->stored);
  if (computed.has_lse) {
    result.lse = metrics_of(pairs_of(computed.lse, reference.lse, reference.undecided_lse, every),
                            run.recipe->statistics);
  }
  result.undecided_o = static_cast<Index>(reference.undecided_o.size());
  result.undecided_lse = static_cast<Index>(reference.undecided_lse.size());
  sum_events(run, computed, result);
  const bool bounded = run.reference_inputs == ReferenceInputs::rounded &&
                       rounding_of(run, sequence(*run.problem, 0)).has_value();
  if (bounded) compare_with_bound(bounds(run, rounded, parallel_for), computed, reference, result);
  return result;
}

}  // namespace flashbound
