// What the error bound (core/error_bound.hpp) needs to know of the data of one head.
#pragma once

#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/query_block.hpp"

#include <optional>
#include <vector>

namespace flashbound {

// What the bound needs to know of one row's data, whatever the arithmetic.
struct RowConditions {
  Index visible = 0;       // keys
  double product_max = 0;  // G: max over visible keys of sum_c |q_c k_jc|
  double logit_max = 0;    // of visible logits and the sink; undefined when there is none
  double logit_min = 0;
  double bias_max = 0;   // max over visible keys of slope x distance
  double value_max = 0;  // max over visible keys of |v_jc|, finite ones
};

struct HeadConditions {
  Shape shape{};
  double scale = 0;
  double softcap = 0;
  std::optional<double> sink;
  std::vector<RowConditions> rows;  // seqlen_q
  RowMatrix mean_magnitude;         // A_c: seqlen_q x head_dim_v; NaN where a visible v is
  RowMatrix spread;                 // max v - min v over visible keys; infinite for rows whose
                                    // logits are too small to need it
};

HeadConditions head_conditions(const Problem& problem, const Inputs& inputs,
                               const Sequence& sequence, Index head,
                               const ParallelFor& parallel_for = serial);

}  // namespace flashbound
