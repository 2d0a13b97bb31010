// Matrix products with a recipe's accumulation (core/recipe.hpp): sum += a b.
#pragma once

#include "core/numeric_operations.hpp"
#include "core/recipe.hpp"
#include "core/rounder.hpp"

#include <optional>

namespace flashbound {

template <class T>
struct ProductArithmetic {
  Accumulation how;
  std::optional<Rounder<T>> product;  // absent: exact
  Rounder<T> sum;
};

// sum is (rows, cols), a (rows, n), b (n, cols). Every element of the sum is accumulated by itself,
// so that its bits depend on no block of rows or columns.
template <class T>
void accumulate_products(numeric::Matrix<T>& sum, const numeric::Matrix<T>& a,
                         const numeric::Matrix<T>& b, const ProductArithmetic<T>& arithmetic);

// `accumulated` and n terms as a tensor core adds them; exposed for tests. `bits` as
// Accumulation::alignment_bits. Terms are exact in fp64. The result is rounded toward zero to
// `format`; where something is not finite it is the plain sum.
double aligned_sum(double accumulated, const double* terms, Index n, int bits,
                   const FloatFormat& format);

}  // namespace flashbound
