#include "experiments/numerics/narrow_softmax.hpp"

#include "core/exponential.hpp"
#include "core/rounder.hpp"
#include "experiments/random_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace flashbound {
namespace {

// The operations of one format. fp64 carries formats of up to 25 bits innocuously.
struct Arithmetic {
  explicit Arithmetic(const FloatFormat& of)
      : format(of), round(of, Rounding::nearest_even, operands_of(of), stream) {}
  Arithmetic(const Arithmetic&) = delete;
  Arithmetic& operator=(const Arithmetic&) = delete;

  double exp(double x) const { return exp_rounded(format, Rounding::nearest_even, x); }
  // Not certified: errs by u and 2^-51.
  double log(double x) const { return round.of_double(std::log(x)); }

  FloatFormat format;
  RandomStream stream;  // never drawn from
  Rounder<double> round;
};

// exp(x_i - shift), their recursive sum and the quotients.
Softmax softmax_of(const Arithmetic& in, std::span<const double> x, double shift) {
  Softmax result;
  result.weights.reserve(x.size());
  for (const double x_i : x) {
    result.weights.push_back(in.exp(in.round.add(x_i, -shift)));
    result.sum = in.round.add(result.sum, result.weights.back());
  }
  for (double& weight : result.weights) weight = in.round.divide(weight, result.sum);
  result.lse = in.round.add(shift, in.log(result.sum));
  return result;
}

}  // namespace

Softmax unshifted_softmax(const FloatFormat& format, std::span<const double> x) {
  return softmax_of(Arithmetic(format), x, 0);  // subtracting and adding 0 round nothing
}

Softmax shifted_softmax(const FloatFormat& format, std::span<const double> x) {
  return softmax_of(Arithmetic(format), x, *std::max_element(x.begin(), x.end()));
}

std::vector<double> division_free_softmax(const FloatFormat& format, std::span<const double> x,
                                          double lse) {
  const Arithmetic in(format);
  std::vector<double> weights;
  weights.reserve(x.size());
  for (const double x_i : x) weights.push_back(in.exp(in.round.add(x_i, -lse)));
  return weights;
}

Softmax exact_softmax(std::span<const double> x) {
  const double maximum = *std::max_element(x.begin(), x.end());
  Softmax result;
  for (const double x_i : x) {
    result.weights.push_back(std::exp(x_i - maximum));
    result.sum += result.weights.back();
  }
  for (double& weight : result.weights) weight /= result.sum;
  result.lse = maximum + std::log(result.sum);
  result.sum *= std::exp(maximum);
  return result;
}

double relative_distance(std::span<const double> a, std::span<const double> b) {
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

double compounded(double u, double count) { return std::expm1(count * std::log1p(u)); }

std::string_view name(VectorKind kind) {
  switch (kind) {
    case VectorKind::normal: return "normal";
    case VectorKind::uniform: return "uniform";
    case VectorKind::descending: return "descending";
    case VectorKind::equal: return "equal";
  }
  return "";
}

std::vector<double> test_vector(VectorKind kind, const FloatFormat& format, Index n,
                                std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& x_i : x) {
    if (kind == VectorKind::equal) break;
    x_i = round_to(format, kind == VectorKind::normal ? normal(engine) : 5 * uniform(engine) - 4);
  }
  if (kind == VectorKind::descending) std::sort(x.begin(), x.end(), std::greater<>());
  return x;
}

}  // namespace flashbound
