// How far runs of the numeric machine are from the reference: what claims about accuracy measure.
#pragma once

#include "core/problem.hpp"
#include "core/recipe.hpp"
#include "core/tensor.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flashbound {

// Some queries of one head without a mask. Queries are independent and alike, so a few of them
// show what all would: `rows` is how many are looked at, of seqlen_kv ones.
struct HeadCase {
  Problem problem{};  // of those queries
  OwnedInputs inputs{};
  std::vector<double> exact{};  // O of the reference in fp64, row-major
};
// Inputs of a distribution (experiments/distributions.hpp), rounded to a format.
HeadCase head_case(std::string_view distribution, Index rows, Index seqlen_kv, Index head_dim,
                   const FloatFormat& format, std::uint64_t seed);

// O, row-major, by the reference and by an algorithm in a recipe. Of more queries in `inputs` than
// in `problem` the first are taken.
std::vector<double> reference_output(const Problem& problem, const Inputs& inputs);
std::vector<double> numeric_output(std::string_view algorithm, const Recipe& recipe,
                                   const Problem& problem, const Tile& tile, const Inputs& inputs);

struct Deviation {
  double max_abs = 0;
  double mean_abs = 0;
  double rmse = 0;
};
// Throws std::runtime_error where a value is not finite: such a run measures no deviation.
Deviation deviation(std::span<const double> computed, std::span<const double> exact);

// The middle one, or the mean of the two in the middle. Not of nothing.
double median(std::vector<double> values);
// Spearman's rank correlation; equal values share the mean of their ranks. Zero where one of the
// two is constant.
double spearman(const std::vector<double>& x, const std::vector<double>& y);

// Three significant digits: "1.23e-05", and "1.23" or "12.3" for what is near one.
std::string scientific(double value);
std::string plain(double value);

}  // namespace flashbound
