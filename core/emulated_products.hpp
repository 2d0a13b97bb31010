// Matrix products in which every product and every partial sum is rounded to a format, on SIMD
// lanes: the inner loop of emulated arithmetic. Each element is summed sequentially, so that its
// bits depend on neither the lane width nor the block of rows that is computed together.
#pragma once

#include "core/int128.hpp"
#include "core/lane_rounding.hpp"

namespace flashbound {

template <class T>
struct ProductRounding {
  bool exact_product = false;  // fused: the sum is the only rounding
  LaneRounding<T> product{};
  LaneRounding<T> sum{};  // kind none when the product is exact
};

// A row-major matrix of `rows` x `cols` elements, densely packed.
template <class T>
struct MatrixView {
  T* elements = nullptr;
  Index rows = 0;
  Index cols = 0;
};

// sum(r, c) = round_sum(sum(r, c) + round_product(a(r, k) b(k, c))) for k = 0, 1, ... in order.
void accumulate_rounded(MatrixView<float> sum, MatrixView<const float> a, MatrixView<const float> b,
                        const ProductRounding<float>& rounding);
void accumulate_rounded(MatrixView<double> sum, MatrixView<const double> a,
                        MatrixView<const double> b, const ProductRounding<double>& rounding);

}  // namespace flashbound
