// Softmax and log-sum-exp of one vector with every operation rounded to one format, the setting of
// Blanchard, Higham and Higham 2021; and the exact values in fp64.
#pragma once

#include "core/float_format.hpp"
#include "core/int128.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace flashbound {

struct Softmax {
  double sum = 0;  // of exp(x_i), or of exp(x_i - max) where shifted
  double lse = 0;
  std::vector<double> weights;  // exp(x_i) / sum of exp(x_j)
};

// x_i are numbers of the format, which has at most 25 significand bits.
Softmax unshifted_softmax(const FloatFormat& format, std::span<const double> x);
// exp(x_i - max), whose sum is taken over all i, as attention kernels do.
Softmax shifted_softmax(const FloatFormat& format, std::span<const double> x);
// exp(x_i - lse), for an lse that is a number of the format.
std::vector<double> division_free_softmax(const FloatFormat& format, std::span<const double> x,
                                          double lse);
// In fp64, to about 1e-13 relatively; `sum` is that of exp(x_i).
Softmax exact_softmax(std::span<const double> x);

// max |a_i - b_i| / max |b_i|, the norm of the publication's softmax bounds.
double relative_distance(std::span<const double> a, std::span<const double> b);

// (1 + u)^count - 1, at least what `count` roundings of one quantity change it by, upwards or
// downwards: 1 - (1 - u)^count is smaller. No second-order term is left out.
double compounded(double u, double count);

// Vectors that sums find easy and hard.
enum class VectorKind { normal, uniform, descending, equal };
std::string_view name(VectorKind kind);
// `normal`: standard normal; `uniform`: on [-4, 1], in any or in descending order; `equal`: zeros.
// exp(x_i) of 10^4 of them neither overflow nor underflow in fp16. Rounded to the format.
std::vector<double> test_vector(VectorKind kind, const FloatFormat& format, Index n,
                                std::uint64_t seed);

}  // namespace flashbound
