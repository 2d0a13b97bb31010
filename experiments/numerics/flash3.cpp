#include "experiments/numerics/flash3.hpp"

#include "experiments/numerics/claims.hpp"
#include "experiments/numerics/deviation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace flashbound {
namespace {

constexpr std::array kClaims{
    NumericClaim{"FA3-04", "Shah et al. 2024 (arXiv 2407.08608), Table 3, fp16",
                 "FlashAttention-2 and 3 in fp16 have 1.7x lower RMSE than standard attention, "
                 "whose softmax results are in fp16, on N(0,1) + N(0,100) Bernoulli(0.001) inputs, "
                 "against fp64.",
                 "standard 3.2e-4, FlashAttention-2 1.9e-4, FlashAttention-3 1.9e-4; sequence "
                 "length and head dimension are not given",
                 fp16_accuracy},
    NumericClaim{"FA3-05", "Shah et al. 2024 (arXiv 2407.08608), Table 3, fp8 e4m3",
                 "FlashAttention-3 in fp8 has 2.6x lower RMSE than a baseline with per-tensor "
                 "scaling; without block quantization the same, without incoherent processing none "
                 "of the gain, on N(0,1) + N(0,100) Bernoulli(0.001) inputs, against fp64.",
                 "baseline 2.4e-2, FlashAttention-3 9.1e-3, without block quantization 9.3e-3, "
                 "without incoherent processing 2.4e-2; sequence length and head dimension are not "
                 "given",
                 fp8_accuracy},
};

}  // namespace

std::span<const NumericClaim> flash3_claims() { return kClaims; }

double PooledRmse::value() const {
  double squares = 0;
  for (const double draw : draws) squares += draw * draw;
  return std::sqrt(squares / static_cast<double>(draws.size()));
}

std::string Range::text() const { return plain(low) + " to " + plain(high); }

Range range(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

Range ratio_range(const PooledRmse& numerator, const PooledRmse& denominator) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < numerator.draws.size(); ++i) {
    ratios.push_back(numerator.draws[i] / denominator.draws[i]);
  }
  return range(ratios);
}

}  // namespace flashbound
