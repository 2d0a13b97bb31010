// What the claims of Golden et al. 2024 share: attention in tiles against unfused attention, in the
// arithmetics that "at bf16" may mean.
#pragma once

#include "experiments/numerics/claim.hpp"
#include "experiments/numerics/deviation.hpp"

namespace flashbound {

// Two runs on the same rounded inputs. The baseline is the program `standard`, whole rows of scores
// at a time.
struct Comparison {
  std::string_view name;
  std::string_view flash;  // algorithm
  Recipe flash_recipe;
  Recipe baseline_recipe;
};

// Every addition and multiplication rounded to `format`, partial sums of matrix products included.
Comparison every_operation(const FloatFormat& format);
// Every element of every matrix, vector and row sum rounded once it is computed, as a program of
// tensor operations that keeps each result in `format` does. Sums within a product are in fp64,
// whose errors vanish next to the format's; row sums are pairwise and round every addition.
Comparison every_result(const FloatFormat& format);
// FlashAttention-2's kernel against PyTorch's unfused attention, both bf16 with fp32 inside.
Comparison as_in_kernels();

// The three in bf16, in this order.
std::vector<Comparison> bf16_comparisons();

ClaimResult isolated_forward(const ParallelFor& parallel_for);     // GO-01
ClaimResult mantissa_sweep(const ParallelFor& parallel_for);       // GO-02
ClaimResult length_sweep(const ParallelFor& parallel_for);         // GO-03
ClaimResult block_area(const ParallelFor& parallel_for);           // GO-04
ClaimResult swapped_block_sizes(const ParallelFor& parallel_for);  // GO-05

}  // namespace flashbound
