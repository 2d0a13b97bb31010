#include "tests/core/gradient_cases.hpp"

#include "tests/core/gradient_oracle.hpp"
#include "tests/core/one_head.hpp"

#include <utility>

namespace flashbound::testing {
namespace {

Problem heads(const Shape& shape, Index batch, Index heads_q, Index heads_kv) {
  Problem problem = one_head(shape);
  problem.batch = batch;
  problem.num_heads_q = heads_q;
  problem.num_heads_kv = heads_kv;
  return problem;
}

Problem causal(Problem problem) {
  problem.window_right = 0;
  return problem;
}

Problem capped(Problem problem, double softcap) {
  problem.softcap = softcap;
  return problem;
}

Problem packed(std::vector<Index> cu_q, std::vector<Index> cu_kv, Index head_dim, Index heads_q,
               Index heads_kv) {
  Problem problem = heads({cu_q.back(), cu_kv.back(), head_dim, head_dim}, 1, heads_q, heads_kv);
  problem.cu_seqlens_q = std::move(cu_q);
  problem.cu_seqlens_kv = std::move(cu_kv);
  return problem;
}

// 49999 keys under a mask whose cells alternate.
Problem long_and_masked() {
  Problem problem = one_head({3, 49999, 4, 4});
  BlockMask mask;
  mask.block_q = 1;
  mask.block_kv = 64;
  mask.rows = 3;
  mask.cols = Partition{49999, 64}.count();
  for (Index cell = 0; cell < mask.rows * mask.cols; ++cell) {
    mask.cells.push_back(cell % 3 == 0 ? 1 : 0);
  }
  problem.block_mask = mask;
  return problem;
}

}  // namespace

std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> cases{
      {"A5", long_and_masked(), 1},
      {"A11", causal(packed({0, 76, 110, 256}, {0, 1, 2, 3}, 32, 1, 1)), 3},
      {"A12", causal(one_head({96, 96, 128, 128})), 3},
      {"A13", packed({0, 0, 67}, {0, 1, 140}, 16, 2, 2), 1},
      {"A20", packed({0, 0, 19, 32, 32}, {0, 40, 67, 80, 128}, 256, 4, 1), 1},
      {"A26", capped(packed({0, 50, 128}, {0, 117, 217}, 128, 1, 1), 15), 1},
      {"A26", capped(causal(heads({48, 48, 128, 128}, 2, 2, 2)), 10), 1},
      {"A27", heads({2, 3, 2, 2}, 15000, 1, 1), 1},
      {"A34", one_head({65, 65, 24, 24}), 1},
  };
  for (const Index head_dim : {72, 104}) {
    cases.push_back({"A29", one_head({50, 70, head_dim, head_dim}), 1});
  }
  return cases;
}

GradientOperands operands_of(const GradientCase& gradient_case) {
  GradientOperands result{normal_inputs(gradient_case.problem, 42),
                          normal_grad_o(gradient_case.problem, 42)};
  for (Tensor<double>* tensor :
       {&result.inputs.q, &result.inputs.k, &result.inputs.v, &result.grad_o}) {
    for (double& value : tensor->elements) value *= gradient_case.input_size;
  }
  round_to_fp32(result.inputs);
  for (double& value : result.grad_o.elements) value = static_cast<float>(value);
  return result;
}

}  // namespace flashbound::testing
