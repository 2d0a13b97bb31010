#include "experiments/random_inputs.hpp"

#include <cmath>

namespace flashbound {
namespace {

Tensor<double> normal_tensor(std::mt19937_64& engine, std::array<Index, 4> shape) {
  Tensor<double> tensor(shape);
  for (double& value : tensor.elements) value = normal(engine);
  return tensor;
}

}  // namespace

double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

double normal(std::mt19937_64& engine) {
  constexpr double kPi = 3.14159265358979323846;
  const double radius = std::sqrt(-2 * std::log(1 - uniform(engine)));
  return radius * std::cos(2 * kPi * uniform(engine));
}

OwnedInputs normal_inputs(const Problem& problem, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const Problem& p = problem;
  Tensor<double> q = normal_tensor(engine, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim});
  Tensor<double> k = normal_tensor(engine, {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim});
  Tensor<double> v = normal_tensor(engine, {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v});
  return {std::move(q), std::move(k), std::move(v)};
}

void round_to_fp32(OwnedInputs& inputs) {
  for (Tensor<double>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (double& value : tensor->elements) value = static_cast<double>(static_cast<float>(value));
  }
}

}  // namespace flashbound
