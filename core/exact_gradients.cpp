// exact_gradients(): one unit after the other, its elements up the ladder of precisions.
#include "core/errors.hpp"
#include "core/exact.hpp"
#include "core/exact/gradient_unit.hpp"
#include "core/exact/precision.hpp"
#include "core/exact/rounding.hpp"
#include "core/reference.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace flashbound {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Few queries by many keys for dQ, few keys by many queries for dK and dV.
constexpr Tile kRowTile{.block_q = 32, .block_kv = 512};
constexpr Tile kKeyTile{.block_q = 128, .block_kv = 32};

constexpr Tile kOneQuery{.block_q = 1, .block_kv = 512};
constexpr Tile kOneKey{.block_q = 128, .block_kv = 1};

void validate_grad_o(const Problem& p, const TensorView<const double>& grad_o) {
  const std::array<Index, 4> shape{p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v};
  if (grad_o.shape != shape) reject("grad_o", "another shape", "of the shape of O");
}

// Where the element of a unit lies in the tensor that it belongs to.
Index place_of(const GradientUnit& unit, const Element& element) {
  const Problem& p = *unit.problem;
  if (element.of == Element::Of::q) {
    const Index head = unit.query_head(static_cast<std::size_t>(element.row / unit.at.seqlen_q));
    const Index row = unit.at.q_begin + element.row % unit.at.seqlen_q;
    return ((unit.at.batch * p.num_heads_q + head) * p.seqlen_q + row) * p.head_dim + element.col;
  }
  const Index cols = element.of == Element::Of::k ? p.head_dim : p.head_dim_v;
  const Index row = unit.at.kv_begin + element.row;
  return ((unit.at.batch * p.num_heads_kv + unit.key_head) * p.seqlen_kv + row) * cols +
         element.col;
}

double& number_of(const GradientUnit& unit, const Element& element, Gradients& gradients) {
  const auto place = static_cast<std::size_t>(place_of(unit, element));
  switch (element.of) {
    case Element::Of::q: return gradients.q.elements[place];
    case Element::Of::k: return gradients.k.elements[place];
    default: return gradients.v.elements[place];
  }
}

// Rounds those of a row of balls that are wanted (all, without a list); what stays in doubt is
// added to `doubts`.
void settle(const GradientUnit& unit, Element element, const BallMatrix& balls, Index row,
            const std::vector<Element>* wanted, Gradients& gradients,
            std::vector<Element>& doubts) {
  for (element.col = 0; element.col < balls.cols(); ++element.col) {
    if (wanted && !std::binary_search(wanted->begin(), wanted->end(), element)) continue;
    const Rounding rounding = round_ball(balls(row, element.col));
    number_of(unit, element, gradients) = rounding.value.value_or(kNan);
    if (!rounding.value) doubts.push_back(element);
  }
}

// Blocks of one tile, numbered query head by query head where they are of queries.
struct Work {
  Tile tile{};
  std::vector<Index> blocks;
  const std::vector<Element>* wanted = nullptr;  // null: all
};

Work all_of(const Tile& tile, Index count) {
  Work work{tile, std::vector<Index>(static_cast<std::size_t>(count)), nullptr};
  std::iota(work.blocks.begin(), work.blocks.end(), Index{0});
  return work;
}

// The rows (or keys) of some wanted elements, each a block of its own.
Work some_of(const Tile& tile, const std::vector<Element>& wanted, bool queries) {
  Work work{tile, {}, &wanted};
  for (const Element& element : wanted) {
    if ((element.of == Element::Of::q) == queries) work.blocks.push_back(element.row);
  }
  std::sort(work.blocks.begin(), work.blocks.end());
  work.blocks.erase(std::unique(work.blocks.begin(), work.blocks.end()), work.blocks.end());
  return work;
}

// One unit at one precision. What is left in doubt comes back in a fixed order.
class UnitPass {
 public:
  UnitPass(const GradientUnit& unit, slong precision, const ParallelFor& parallel_for,
           Gradients& gradients)
      : unit_(&unit),
        precision_(precision),
        parallel_for_(&parallel_for),
        gradients_(&gradients),
        facts_(static_cast<std::size_t>(unit.row_count())) {}

  std::vector<Element> everything() {
    const auto heads = static_cast<Index>(unit_->heads.size());
    std::vector<Element> doubts =
        queries(all_of(kRowTile, heads * cut(kRowTile).q_block_count()), true);
    const std::vector<Element> more = keys(all_of(kKeyTile, cut(kKeyTile).kv_block_count()));
    doubts.insert(doubts.end(), more.begin(), more.end());
    std::sort(doubts.begin(), doubts.end());
    return doubts;
  }
  // `wanted` is sorted.
  std::vector<Element> some(const std::vector<Element>& wanted) {
    std::vector<Element> doubts = queries(some_of(kOneQuery, wanted, true), true);
    const Work of_keys = some_of(kOneKey, wanted, false);
    if (!of_keys.blocks.empty()) {
      const auto heads = static_cast<Index>(unit_->heads.size());
      queries(all_of(kRowTile, heads * cut(kRowTile).q_block_count()), false);
      const std::vector<Element> more = keys(of_keys);
      doubts.insert(doubts.end(), more.begin(), more.end());
    }
    std::sort(doubts.begin(), doubts.end());
    return doubts;
  }

 private:
  Schedule cut(const Tile& tile) const { return unit_->heads.front().schedule().with_tile(tile); }

  std::vector<Element> queries(const Work& work, bool wants_grad) {
    const Schedule schedule = cut(work.tile);
    return run(work, [&](Index block, std::vector<Element>& doubts) {
      const Index i = block % schedule.q_block_count();
      const Index n = block / schedule.q_block_count();
      const BallMatrix dq = query_gradients(*unit_, static_cast<std::size_t>(n), schedule, i,
                                            wants_grad, precision_, facts_);
      const Index first = n * unit_->at.seqlen_q + schedule.q_rows(i).begin;
      for (Index r = 0; r < dq.rows(); ++r) {
        settle(*unit_, {Element::Of::q, first + r, 0}, dq, r, work.wanted, *gradients_, doubts);
      }
    });
  }
  std::vector<Element> keys(const Work& work) {
    const Schedule schedule = cut(work.tile);
    return run(work, [&](Index j, std::vector<Element>& doubts) {
      const KeyGradients grads = key_gradients(*unit_, schedule, j, precision_, facts_);
      const Index first = schedule.kv_rows(j).begin;
      for (Index r = 0; r < grads.k.rows(); ++r) {
        settle(*unit_, {Element::Of::k, first + r, 0}, grads.k, r, work.wanted, *gradients_,
               doubts);
        settle(*unit_, {Element::Of::v, first + r, 0}, grads.v, r, work.wanted, *gradients_,
               doubts);
      }
    });
  }
  template <class F>
  std::vector<Element> run(const Work& work, const F& block) {
    std::vector<std::vector<Element>> doubts(work.blocks.size());
    (*parallel_for_)(static_cast<Index>(work.blocks.size()), [&](Index part) {
      const FlintThread flint;
      const auto at = static_cast<std::size_t>(part);
      block(work.blocks[at], doubts[at]);
    });
    std::vector<Element> all;
    for (const auto& part : doubts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  const GradientUnit* unit_;
  slong precision_;
  const ParallelFor* parallel_for_;
  Gradients* gradients_;
  RowFacts facts_;
};

bool is_unusual(const NotFinite& unusual, const Element& element) {
  const auto row = static_cast<std::size_t>(element.row);
  switch (element.of) {
    case Element::Of::q: return unusual.q[row];
    case Element::Of::k: return unusual.k[row];
    default: return unusual.v[row][static_cast<std::size_t>(element.col)];
  }
}

// Calls f for each element of a unit's gradients.
template <class F>
void for_each_element(const GradientUnit& unit, const F& f) {
  const Problem& p = *unit.problem;
  const auto all = [&](Element::Of of, Index rows, Index cols) {
    for (Index row = 0; row < rows; ++row) {
      for (Index col = 0; col < cols; ++col) f(Element{of, row, col});
    }
  };
  all(Element::Of::q, unit.row_count(), p.head_dim);
  all(Element::Of::k, unit.at.seqlen_kv, p.head_dim);
  all(Element::Of::v, unit.at.seqlen_kv, p.head_dim_v);
}

// Takes the decided elements out of `doubts`.
void decide_rationally(const GradientUnit& unit, Gradients& gradients,
                       std::vector<Element>& doubts) {
  const std::vector<std::optional<double>> values = rational_gradients(unit, doubts);
  std::vector<Element> left;
  for (std::size_t n = 0; n < doubts.size(); ++n) {
    if (values[n]) {
      number_of(unit, doubts[n], gradients) = *values[n];
    } else {
      left.push_back(doubts[n]);
    }
  }
  doubts = std::move(left);
}

void compute(const GradientUnit& unit, const ExactOptions& options, const ParallelFor& parallel_for,
             ExactGradients& result) {
  const FlintThread flint;
  Gradients& gradients = result.gradients;
  int precision = options.first_precision;
  std::vector<Element> doubts = UnitPass(unit, precision, parallel_for, gradients).everything();
  const NotFinite unusual = not_finite(unit);
  for_each_element(unit, [&](const Element& element) {
    if (is_unusual(unusual, element)) number_of(unit, element, gradients) = kNan;
  });
  std::erase_if(doubts, [&](const Element& element) { return is_unusual(unusual, element); });
  if (!doubts.empty()) decide_rationally(unit, gradients, doubts);
  while (!doubts.empty()) {
    const int next = next_precision(precision, options);
    if (next == 0) break;
    precision = next;
    doubts = UnitPass(unit, precision, parallel_for, gradients).some(doubts);
  }
  result.precision = std::max(result.precision, precision);
  for (const Element& element : doubts) {
    std::vector<Index>& list = element.of == Element::Of::q   ? result.undecided_q
                               : element.of == Element::Of::k ? result.undecided_k
                                                              : result.undecided_v;
    list.push_back(place_of(unit, element));
  }
}

}  // namespace

ExactGradients exact_gradients(const Problem& problem, const Inputs& inputs,
                               const TensorView<const double>& grad_o, const ExactOptions& options,
                               const ParallelFor& parallel_for) {
  validate(problem, Emptiness::allowed);
  validate(problem, inputs);
  validate_grad_o(problem, grad_o);
  validate(options);
  ExactGradients result;
  result.gradients = {Tensor<double>(inputs.q.shape), Tensor<double>(inputs.k.shape),
                      Tensor<double>(inputs.v.shape)};
  if (problem.num_heads_kv == 0) return result;
  for (Index s = 0; s < sequence_count(problem); ++s) {
    for (Index g = 0; g < problem.num_heads_kv; ++g) {
      const Sequence at = sequence(problem, s);
      if (at.seqlen_q == 0 || at.seqlen_kv == 0) continue;  // nothing sees anything
      compute(gradient_unit(problem, inputs, grad_o, at, g), options, parallel_for, result);
    }
  }
  for (std::vector<Index>* list : {&result.undecided_q, &result.undecided_k, &result.undecided_v}) {
    std::sort(list->begin(), list->end());
  }
  return result;
}

}  // namespace flashbound
