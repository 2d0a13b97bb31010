// What the claims on accuracy of Shah et al. 2024 (FlashAttention-3) share.
#pragma once

#include "experiments/numerics/claim.hpp"

#include <string>
#include <vector>

namespace flashbound {

ClaimResult fp16_accuracy(const ParallelFor& parallel_for);  // FA3-04
ClaimResult fp8_accuracy(const ParallelFor& parallel_for);   // FA3-05

// A published ratio of errors, and how far a recomputed one may be from it.
constexpr double kRatioTolerance = 0.2;
constexpr bool agrees(double ratio, double published) {
  return ratio >= published * (1 - kRatioTolerance) && ratio <= published * (1 + kRatioTolerance);
}

// Over draws: errors of a few outliers weigh most, so draws differ and squares are pooled.
struct PooledRmse {
  std::vector<double> draws{};
  double value() const;
};
// Of single draws: the smallest and the largest ratio.
struct Range {
  double low = 0;
  double high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
  std::string text() const;  // "1.20 to 2.41"
};
Range range(const std::vector<double>& values);
Range ratio_range(const PooledRmse& numerator, const PooledRmse& denominator);

}  // namespace flashbound
