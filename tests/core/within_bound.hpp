// Comparing outputs with the derived bounds as tolerance.
#pragma once

#include "core/int128.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace flashbound::testing {

// The largest |difference| / allowed over many elements; above 1 (or NaN) is a failure.
class WorstRatio {
 public:
  // Equal infinities and two NaNs agree; an infinite tolerance admits any number but no NaN.
  void add(long double actual, long double expected, long double allowed) {
    ++count_;
    if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return;
    const long double ratio = std::abs(actual - expected) / allowed;
    worst_ =
        std::isnan(ratio) ? std::numeric_limits<long double>::infinity() : std::max(worst_, ratio);
  }
  double worst() const { return static_cast<double>(worst_); }
  Index count() const { return count_; }

 private:
  long double worst_ = 0;
  Index count_ = 0;
};

}  // namespace flashbound::testing
