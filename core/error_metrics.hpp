// How far computed values are from exact ones: sizes of errors, in absolute terms and in units in
// the last place (ulps) of the format they are given in, and whether errors lean to one side.
#pragma once

#include "core/float_format.hpp"
#include "core/int128.hpp"

#include <array>
#include <limits>
#include <span>
#include <string>

namespace flashbound {

// Bin b of an ulp histogram holds errors in (kUlpEdges[b - 1], kUlpEdges[b]], bin 0 those of zero.
inline constexpr std::array<double, 20> kUlpEdges{
    0,   0.5, 1,    2,    4,    8,    16,    32,    64,    128,
    256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, std::numeric_limits<double>::infinity()};
using UlpHistogram = std::array<Index, kUlpEdges.size()>;

// The bin of an error of `ulps` >= 0, and its name: "0", "(0, 0.5]", ..., "(65536, inf]".
std::size_t ulp_bin(double ulps);
std::string ulp_bin_name(std::size_t bin);

// The p-value of the two-sided sign test: were both signs equally likely and errors independent,
// the probability of counts that are at least as uneven. Zeros are left out, as is usual; 1 where
// nothing is left. Exact up to rounding (about 1e-12, relatively) down to 1e-300; it underflows
// to 0 beyond.
double sign_test(Index positive, Index negative);

// Which way errors go. Errors of one output row share their softmax weights, so they are not
// independent and sign_test_p is too small for them: to claim a bias, let each pair that is given
// to error_metrics() come from another row.
struct Bias {
  double mean = 0;
  Index positive = 0;
  Index negative = 0;
  Index zero = 0;
  double sign_test_p = 1;
};

// Everything but the four counts of pairs is of the pairs whose two values are finite.
struct ErrorMetrics {
  Index count = 0;               // pairs: the sum of the next four
  Index finite = 0;              // both values finite
  Index both_nan = 0;            // they agree
  Index same_infinity = 0;       // they agree
  Index nonfinite_mismatch = 0;  // one finite or NaN where the other is not, or infinities of
                                 // different signs
  double max_abs = 0;
  double max_relative = 0;  // where exact is nonzero
  double rmse = 0;
  double max_ulp = 0;  // ulps of the output format at the exact value
  UlpHistogram ulp_histogram{};
  Bias signed_error;     // of computed - exact
  Bias magnitude_error;  // of (computed - exact) sign(exact): positive where |computed| grew
                         // away from zero; zero where exact is
};

// Pairs are taken in order and sums are compensated, so the result depends on nothing else.
// Differences are rounded to fp64: `exact` should be much more exact than `computed`.
// Throws ConfigError where the sizes differ.
ErrorMetrics error_metrics(std::span<const double> computed, std::span<const double> exact,
                           const FloatFormat& output);

}  // namespace flashbound
