// The smallest kind of problem: one sequence of one head, without a mask.
#pragma once

#include "core/problem.hpp"

namespace flashbound::testing {

inline Problem one_head(const Shape& shape) {
  Problem problem;
  problem.seqlen_q = shape.seqlen_q;
  problem.seqlen_kv = shape.seqlen_kv;
  problem.head_dim = shape.head_dim;
  problem.head_dim_v = shape.head_dim_v;
  return problem;
}

}  // namespace flashbound::testing
