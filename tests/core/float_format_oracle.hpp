// Rounding to a format from the definition of the format: the list of its numbers, searched.
#pragma once

#include "core/float_format.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace flashbound::testing {

// The magnitudes 0, ..., largest, and the one number that would follow. The number at index i has
// a last bit that is i's: every binade holds 2^(p-1) numbers, which is even.
inline std::vector<double> magnitudes(const FloatFormat& format) {
  const int p = format.significand_bits;
  std::vector<double> all;
  for (int i = 0; i < 1 << (p - 1); ++i) {
    all.push_back(std::ldexp(i, format.exponent_min - p + 1));
  }
  for (int e = format.exponent_min;; ++e) {
    for (int i = 1 << (p - 1); i < 1 << p; ++i) {
      all.push_back(std::ldexp(i, e - p + 1));
      if (all.back() > format.largest) return all;
    }
  }
}

// What `index` into magnitudes() stands for, overflow and flush included.
inline double number_at(const FloatFormat& format, const std::vector<double>& all,
                        std::size_t index) {
  if (all[index] > format.largest) {
    if (format.overflow == Overflow::saturate) return format.largest;
    return format.overflow == Overflow::nan ? std::numeric_limits<double>::quiet_NaN()
                                            : std::numeric_limits<double>::infinity();
  }
  if (!format.subnormals && all[index] < std::ldexp(1.0, format.exponent_min)) return 0;
  return all[index];
}

// The index of the last magnitude that is at most |x|; of the number after `largest` for all
// beyond. Midpoints of neighbours are exact in double, so all comparisons are.
inline std::size_t index_below(const std::vector<double>& all, double x) {
  const auto above = std::upper_bound(all.begin(), all.end(), std::abs(x));
  return static_cast<std::size_t>(above - all.begin()) - 1;
}

inline double oracle_nearest(const FloatFormat& format, const std::vector<double>& all, double x) {
  std::size_t i = index_below(all, x);
  if (i + 1 < all.size()) {
    const double middle = all[i] + (all[i + 1] - all[i]) / 2;
    if (std::abs(x) > middle || (std::abs(x) == middle && i % 2 == 1)) ++i;
  }
  return std::copysign(number_at(format, all, i), x);
}

inline double oracle_toward_zero(const FloatFormat& format, const std::vector<double>& all,
                                 double x) {
  if (std::abs(x) > format.largest && !std::isinf(x)) return std::copysign(format.largest, x);
  return std::copysign(number_at(format, all, index_below(all, x)), x);
}

// Equal with the sign of zero, or both NaN.
inline bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// Every number, the midpoint to its successor, the doubles next to all of these, the doubles in
// between that quarter the way, and values far out; in both signs.
inline std::vector<double> telling_values(const std::vector<double>& all) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> values{0.0, kInfinity, 1e300, 5e-324, 2.2250738585072014e-308};
  const auto add = [&](double x) {
    values.insert(values.end(), {x, std::nextafter(x, kInfinity), std::nextafter(x, 0.0)});
  };
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const double gap = all[i + 1] - all[i];
    add(all[i]);
    add(all[i] + gap / 4);
    add(all[i] + gap / 2);
    add(all[i] + gap * 3 / 4);
  }
  add(all.back());
  add(2 * all.back());
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

}  // namespace flashbound::testing
