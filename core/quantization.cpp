#include "core/quantization.hpp"

#include "core/errors.hpp"
#include "core/rounder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace flashbound {
namespace {

Tensor<double> dense(const TensorView<const double>& view) {
  Tensor<double> result(view.shape);
  const TensorView<double> to = result.view();
  for (Index b = 0; b < view.shape[0]; ++b) {
    for (Index h = 0; h < view.shape[1]; ++h) {
      for (Index row = 0; row < view.shape[2]; ++row) {
        for (Index col = 0; col < view.shape[3]; ++col) to(b, h, row, col) = view(b, h, row, col);
      }
    }
  }
  return result;
}

// The smallest number of kScaleBits bits that is no less than x.
double scale_above(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::ceil(std::ldexp(fraction, kScaleBits)), exponent - kScaleBits);
}

// Rows of one head, consecutive in memory.
struct Rows {
  double* elements;
  Index count;
};

double scale_of(const Rows& rows, const FloatFormat& format) {
  double largest = 0;
  for (Index at = 0; at < rows.count; ++at) {
    if (std::isfinite(rows.elements[at])) {
      largest = std::max(largest, std::abs(rows.elements[at]));
    }
  }
  return largest == 0 ? 1.0 : scale_above(largest / format.largest);
}

struct Quantizer {
  const Recipe& recipe;
  RandomStream stream;

  void round(const Rows& rows, double scale) {
    for (Index at = 0; at < rows.count; ++at) {
      double& x = rows.elements[at];
      if (!std::isfinite(x)) continue;
      const bool stochastic = recipe.rounding == Rounding::stochastic;
      const std::uint64_t random = stochastic ? stream.next() : 0;
      x = scale * round_to(recipe.inputs, recipe.rounding, x / scale, random);
    }
  }

  void quantize(Tensor<double>& tensor, Index block_rows) {
    const Index cols = tensor.shape[3];
    const Index head_rows = tensor.shape[2];
    const auto all = static_cast<Index>(tensor.elements.size());
    const Rows whole{tensor.elements.data(), all};
    switch (recipe.quantization.scaling) {
      case Scaling::none: return round(whole, 1);
      case Scaling::per_tensor: return round(whole, scale_of(whole, recipe.inputs));
      case Scaling::per_block: break;
    }
    if (all == 0) return;
    for (Index head = 0; head < tensor.shape[0] * tensor.shape[1]; ++head) {
      for (Index row = 0; row < head_rows; row += block_rows) {
        double* first = tensor.elements.data() + (head * head_rows + row) * cols;
        const Rows block{first, std::min(block_rows, head_rows - row) * cols};
        round(block, scale_of(block, recipe.inputs));
      }
    }
  }
};

// Each row times diag(signs) H / sqrt(n), by the fast Walsh-Hadamard transform.
void rotate(Tensor<double>& tensor, const std::vector<double>& signs) {
  const Index n = tensor.shape[3];
  const double norm = 1 / std::sqrt(static_cast<double>(n));
  for (std::size_t first = 0; first < tensor.elements.size();
       first += static_cast<std::size_t>(n)) {
    double* row = tensor.elements.data() + first;
    for (Index c = 0; c < n; ++c) row[c] *= signs[static_cast<std::size_t>(c)] * norm;
    for (Index half = 1; half < n; half *= 2) {
      for (Index c = 0; c < n; ++c) {
        if ((c & half) != 0) continue;
        const double low = row[c];
        const double high = row[c + half];
        row[c] = low + high;
        row[c + half] = low - high;
      }
    }
  }
}

std::vector<double> random_signs(Index n, std::uint64_t seed) {
  std::vector<double> signs(static_cast<std::size_t>(n));
  for (std::size_t c = 0; c < signs.size(); ++c) {
    signs[c] = (random_bits(seed, c) >> 63) != 0 ? -1.0 : 1.0;
  }
  return signs;
}

}  // namespace

OwnedInputs rounded_inputs(const Recipe& recipe, const Problem& problem, const Inputs& inputs,
                           std::uint64_t seed) {
  OwnedInputs result{dense(inputs.q), dense(inputs.k), dense(inputs.v)};
  const Quantization& quantization = recipe.quantization;
  if (quantization.rotated) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(problem.head_dim))) {
      reject("head_dim", std::to_string(problem.head_dim),
             "a power of two where the recipe rotates Q and K");
    }
    const std::vector<double> signs = random_signs(problem.head_dim, seed);
    rotate(result.q, signs);
    rotate(result.k, signs);
  }
  Quantizer quantizer{recipe, {~seed}};
  quantizer.quantize(result.q, quantization.block_q);
  quantizer.quantize(result.k, quantization.block_kv);
  quantizer.quantize(result.v, quantization.block_kv);
  return result;
}

}  // namespace flashbound
