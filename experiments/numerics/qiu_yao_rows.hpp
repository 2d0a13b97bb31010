// What QY-03 and QY-04 look at: rows of attention whose maximum is repeated, and V of one sign.
#pragma once

#include "core/error_metrics.hpp"
#include "core/parallel_for.hpp"
#include "core/recipe.hpp"

#include <string_view>

namespace flashbound {

// Where the product P V is rounded to bf16. Weights are rounded to bf16 in all of them.
enum class RoundedProduct {
  once,            // accumulated in fp32, the unnormalised sum rounded to bf16
  every_addition,  // accumulated in bf16
  after_division,  // accumulated and divided by the row sum in fp32, then rounded, as kernels do
};
std::string_view name(RoundedProduct product);

struct TiedRows {
  RoundedProduct product{};
  Index ties = 2;      // keys with the maximal logit
  double maximum = 1;  // that logit
  double gap = 12;     // from it to the other keys' logits, which spread by 1 to both sides
  Shift shift = Shift::maximum;
  double shift_factor = 7;
};

// Errors against the exact result with the same rounded weights, in ulps of bf16 at that result.
struct RowErrors {
  double largest_weight = 0;
  Bias outputs{};    // of single outputs
  Bias row_means{};  // of the means of each row's outputs: rows are independent
};

// V = -|N(0, 1)| in bf16: an error below zero is one to a larger magnitude.
RowErrors tied_row_errors(const TiedRows& rows, const ParallelFor& parallel_for);

}  // namespace flashbound
