// The exponentials that attention kernels compute: exact to the last bit, as the hardware's exp2,
// or as a polynomial.
#pragma once

#include "core/float_format.hpp"

#include <span>

namespace flashbound {

// e^x and 2^x rounded to the format once, certified: where fp64 leaves the rounding in doubt, ball
// arithmetic (Arb) decides it. To nearest or toward zero.
double exp_rounded(const FloatFormat& format, Rounding rounding, double x);
double exp2_rounded(const FloatFormat& format, Rounding rounding, double x);

// Where e^x or 2^x lies when the library's exp or exp2 gives y: 1 ulp by the GNU C library manual,
// doubled; of the subnormals where y is one.
struct ExponentialRange {
  double low;
  double high;
};
ExponentialRange exponential_range(double y);

// Coefficients c_0 = 1, c_1, ... c_degree of a polynomial near 2^f on [0, 1], as fp32 numbers.
// Degree 3 is FlashAttention-4's (Zadouri et al. 2026, arXiv 2603.05451), the others minimise the
// largest relative error with c_0 = 1; exponential_test.cpp finds them again by Remez exchange.
std::span<const float> exp2_coefficients(int degree);
// Largest relative error of the polynomial on [0, 1) in exact arithmetic, rounded up.
double exp2_polynomial_error(int degree);

// 2^t in fp32 as such kernels do: t below -126 gives 0 (flushed subnormals), above 128 infinity,
// NaN stays. Horner's rule with one rounding a step, then 2^floor(t) in the exponent.
float exp2_polynomial(int degree, float t);

}  // namespace flashbound
