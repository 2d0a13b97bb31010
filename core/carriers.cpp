#include "core/carriers.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace flashbound {
namespace {

std::array<FloatFormat, 6> formats(const Recipe& r) {
  return {r.inputs, r.scores, r.statistics, r.probabilities, r.accumulator, r.stored};
}

std::vector<FloatFormat> product_formats(const Recipe& r) {
  std::vector<FloatFormat> all;
  for (const Accumulation* product : {&r.scores_product, &r.values_product}) {
    all.push_back(product->sum);
    if (product->product) all.push_back(*product->product);
  }
  return all;
}

template <class T>
bool all_direct(const Rounder<T>& rounder) {
  return rounder.adds_directly() && rounder.multiplies_directly() && rounder.divides_directly();
}

}  // namespace

OperandRange operand_range(const Recipe& r) {
  OperandRange range{r.inputs.significand_bits + scale_bits(r.quantization), 0};
  const auto include = [&](const FloatFormat& format) {
    range.bits = std::max(range.bits, format.significand_bits);
    range.lowest = std::min(range.lowest, format.exponent_min - format.significand_bits + 1);
  };
  for (const FloatFormat& format : formats(r)) include(format);
  for (const FloatFormat& format : product_formats(r)) include(format);
  return range;
}

bool float_carries(const Recipe& r) {
  // Scaled inputs may be no floats.
  if (r.rounding != Rounding::nearest_even || r.quantization.scaling != Scaling::none) return false;
  for (const FloatFormat& format : formats(r)) {
    if (!lane_rounding<float>(format)) return false;
  }
  RandomStream none;
  const OperandRange operands = operand_range(r);
  std::vector<FloatFormat> computed = product_formats(r);
  computed.insert(computed.end(), {r.scores, r.statistics, r.accumulator});
  for (const FloatFormat& format : computed) {
    if (!all_direct(Rounder<float>(format, r.rounding, operands, none))) return false;
  }
  // Exact products end in sums of fp32, by FMA, or are rounded before.
  for (const Accumulation* product : {&r.scores_product, &r.values_product}) {
    if (!product->product && product->sum != float_format(NumberFormat::fp32)) return false;
  }
  return true;
}

}  // namespace flashbound
