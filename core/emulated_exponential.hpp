// The exponentials of a recipe: of scores, and of the factors that rescale and merge.
#pragma once

#include "core/numeric_events.hpp"
#include "core/recipe.hpp"
#include "core/rounder.hpp"

namespace flashbound {

template <class T>
class EmulatedExponential {
 public:
  // Draws from `stream`, which must outlive it.
  EmulatedExponential(const Recipe& recipe, const OperandRange& operands, RandomStream& stream);

  // exp(before - after), as statistics. Kernels approximate weights, of which there are many, and
  // never factors: a polynomial is used for weights alone.
  T factor(T before, T after) const;
  // exp(score - maximum) times 2^offset, rounded to `target`.
  T weight(const Rounder<T>& target, T score, T maximum, RangeEvents& events) const;

 private:
  double power(const Rounder<T>& target, bool base_two, double x) const;
  double lifted_power(const Rounder<T>& target, double x) const;

  Exponential exponential_;
  int offset_ = 0;
  OperandRange operands_;
  RandomStream* stream_;
  Rounder<T> scores_, statistics_;
  T log2_e_;  // as scores, to nearest whatever the recipe's rounding
};

}  // namespace flashbound
