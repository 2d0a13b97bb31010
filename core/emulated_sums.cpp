#include "core/emulated_sums.hpp"

#include "core/emulated_products.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace flashbound {
namespace {

template <class T>
using Matrix = numeric::Matrix<T>;

template <class T>
T term(const ProductArithmetic<T>& arithmetic, T a, T b) {
  return arithmetic.product ? arithmetic.product->multiply(a, b) : arithmetic.sum.multiply(a, b);
}

template <class T>
MatrixView<const T> view(const Matrix<T>& m) {
  return {m.data(), m.rows(), m.cols()};
}

template <class T>
void accumulate_sequential(Matrix<T>& sum, const Matrix<T>& a, const Matrix<T>& b,
                           const ProductArithmetic<T>& arithmetic) {
  const bool fused = !arithmetic.product && arithmetic.sum.native();
  if (fused || (arithmetic.product && arithmetic.product->multiplies_directly() &&
                arithmetic.sum.adds_directly())) {
    ProductRounding<T> rounding{.exact_product = fused, .sum = *arithmetic.sum.lanes()};
    if (!fused) rounding.product = *arithmetic.product->lanes();
    return accumulate_rounded({sum.data(), sum.rows(), sum.cols()}, view(a), view(b), rounding);
  }
  for (Index r = 0; r < sum.rows(); ++r) {
    for (Index k = 0; k < a.cols(); ++k) {
      for (Index c = 0; c < sum.cols(); ++c) {
        T& x = sum(r, c);
        x = arithmetic.product
                ? arithmetic.sum.add(x, arithmetic.product->multiply(a(r, k), b(k, c)))
                : arithmetic.sum.multiply_add(a(r, k), b(k, c), x);
      }
    }
  }
}

// The terms [first, last) of one element as a balanced tree.
template <class T>
T tree(const Matrix<T>& a, const Matrix<T>& b, Index r, Index c, Index first, Index last,
       const ProductArithmetic<T>& arithmetic) {
  if (last - first == 1) return term(arithmetic, a(r, first), b(first, c));
  const Index middle = first + (last - first) / 2;
  return arithmetic.sum.add(tree(a, b, r, c, first, middle, arithmetic),
                            tree(a, b, r, c, middle, last, arithmetic));
}

template <class T>
void accumulate_pairwise(Matrix<T>& sum, const Matrix<T>& a, const Matrix<T>& b,
                         const ProductArithmetic<T>& arithmetic) {
  for (Index r = 0; r < sum.rows(); ++r) {
    for (Index c = 0; c < sum.cols() && a.cols() > 0; ++c) {
      sum(r, c) = arithmetic.sum.add(sum(r, c), tree(a, b, r, c, 0, a.cols(), arithmetic));
    }
  }
}

template <class T>
void accumulate_blocks(Matrix<T>& sum, const Matrix<T>& a, const Matrix<T>& b,
                       const ProductArithmetic<T>& arithmetic) {
  const Accumulation& how = arithmetic.how;
  const Matrix<T> columns = b.transpose();  // terms of one element side by side
  std::array<double, 1024> terms{};
  for (Index r = 0; r < sum.rows(); ++r) {
    for (Index c = 0; c < sum.cols(); ++c) {
      auto accumulated = static_cast<double>(sum(r, c));
      for (Index first = 0; first < a.cols(); first += how.block) {
        const Index n = std::min(how.block, a.cols() - first);
        for (Index k = 0; k < n; ++k) {
          const T x = a(r, first + k);
          const T y = columns(c, first + k);
          // validate() keeps exact products within fp64.
          terms[static_cast<std::size_t>(k)] =
              arithmetic.product ? static_cast<double>(arithmetic.product->multiply(x, y))
                                 : static_cast<double>(x) * static_cast<double>(y);
        }
        accumulated =
            aligned_sum(accumulated, terms.data(), n, how.alignment_bits, arithmetic.sum.format());
      }
      sum(r, c) = static_cast<T>(accumulated);
    }
  }
}

int exponent_of(double x) {
  constexpr int kBias = 1023;
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7FF) - kBias;
}

// Toward zero; the bits of a double beyond the format's are cut where it has the exponent.
double truncated(const FloatFormat& format, double x) {
  const double magnitude = std::abs(x);
  if (magnitude < smallest_normal(format) || magnitude > format.largest) {
    return round_to(format, Rounding::toward_zero, x);
  }
  const std::uint64_t mask = ~((std::uint64_t{1} << (53 - format.significand_bits)) - 1);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & mask);
}

// sum x 2^exponent, where a double cannot hold it the next number toward zero.
double toward_zero(std::int64_t sum, int exponent) {
  constexpr int kLowest = -1074;  // of doubles
  constexpr std::int64_t kLargest = std::int64_t{1} << 53;
  while (sum != 0 && (exponent < kLowest || std::abs(sum) > kLargest)) {
    sum /= 2;
    ++exponent;
  }
  return std::ldexp(static_cast<double>(sum), exponent);
}

}  // namespace

double aligned_sum(double accumulated, const double* terms, Index n, int bits,
                   const FloatFormat& format) {
  double largest = std::abs(accumulated);
  double plain = accumulated;
  for (Index k = 0; k < n; ++k) {
    largest = std::max(largest, std::abs(terms[k]));
    plain += terms[k];
  }
  if (!std::isfinite(plain) || largest == 0) return plain;
  // Very small ones are lifted, or the scale would be no normal number.
  const int lift = largest < 0x1p-900 ? 900 : 0;
  const double lifted = std::ldexp(1.0, lift);
  const int exponent = exponent_of(largest * lifted) - bits + 1;
  const auto scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - exponent) << 52);
  auto sum = static_cast<std::int64_t>(accumulated * lifted * scale);  // cut off
  for (Index k = 0; k < n; ++k) sum += static_cast<std::int64_t>(terms[k] * lifted * scale);
  return truncated(format, toward_zero(sum, exponent - lift));
}

template <class T>
void accumulate_products(Matrix<T>& sum, const Matrix<T>& a, const Matrix<T>& b,
                         const ProductArithmetic<T>& arithmetic) {
  switch (arithmetic.how.order) {
    case SumOrder::any:  // validate() keeps it for the machines of fp64 and fp32
    case SumOrder::sequential: return accumulate_sequential(sum, a, b, arithmetic);
    case SumOrder::pairwise: return accumulate_pairwise(sum, a, b, arithmetic);
    case SumOrder::tensor_core: return accumulate_blocks(sum, a, b, arithmetic);
  }
}

template void accumulate_products<float>(Matrix<float>&, const Matrix<float>&, const Matrix<float>&,
                                         const ProductArithmetic<float>&);
template void accumulate_products<double>(Matrix<double>&, const Matrix<double>&,
                                          const Matrix<double>&, const ProductArithmetic<double>&);

}  // namespace flashbound
