// Gradients by the definition (core/gradients.hpp), pair by pair in extended precision and without
// the core's schedule, mask or packing; and how far a computed gradient may be from them.
#pragma once

#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/tensor.hpp"

#include <cstddef>
#include <vector>

namespace flashbound::testing {

// rows x cols numbers.
struct Grid {
  Index rows = 0;
  Index cols = 0;
  std::vector<long double> values{};

  Grid() = default;
  Grid(Index of_rows, Index of_cols)
      : rows(of_rows), cols(of_cols), values(static_cast<std::size_t>(of_rows * of_cols)) {}
  long double& operator()(Index row, Index col) {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
  long double operator()(Index row, Index col) const {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
};

// What one query head of one entry of the batch gives back, rows along the tensors' sequence axis
// (packed or not).
struct OracleGradients {
  Grid q, k, v;
  Grid q_bound, k_bound, v_bound;
};

// THE BOUND. What computes in an arithmetic of unit roundoff u (fp64 or fp32), from inputs exact in
// it and from row statistics, O or P that the fp64 reference left and that were rounded to it, is
// at most so far from the exact gradients. A rounding is a factor within exp(+-l), l = -log(1 - u),
// as in core/error_bound.hpp. For row i with n visible keys, with A_ij = sum_c |dO_ic V_jc| and B_i
// = sum_j P_ij A_ij, which is no less than |delta_i| and sum_c |dO_ic O_ic|:
//
//  logits   |S^ - S| <= D: products in any order (head_dim + 2 roundings of |scale| sum |q k|), for
//           a softcap 12 of min(c, |x|) (tanh errs by 6 u at most, two conversions, a quotient, a
//           product), for ALiBi three of the bias and one of either operand.
//  P        P^ = P exp(e), |e| <= 2 D + (2 R + n + 6 M + 12) l: the reference's statistics err by
//           D + (R + n + 2) l and, in the logarithm, 5 M l at most; their rounding by M l; a
//           difference of a logit and a maximum (or lse) by R l, where R bounds it and M bounds
//           |lse| and |row_max|; two for exp; a quotient, a rounding of P.
//  dP       |dP^ - dP| <= A (exp(dv l) - 1).
//  delta    either sum: |delta^ - delta| <= B (exp(e + (n + dv + 4) l) - 1).
//  dL       = P (dP - delta): two more roundings, and |dP - delta| <= A + B, so that
//           |dL^ - dL| <= P (A + B) (exp(2 e + (n + dv + 6) l) - 1).
//  slope    scale (1 - t^2), t = tanh(x / c), |slope| <= |scale|: t errs by 6 l, its argument by
//           D / c and 4 l; since 2 |t| <= 2 and the slope changes by less than its argument does,
//           |slope^ - slope| <= |scale| (D / c + 24 l); without a softcap by 2 l.
//  dQ_c     = sum_j dS_ij k_jc, n products and additions in any order, zeros added exactly:
//           |scale| sum_j P (A + B) |k_jc| (exp(2 e + D / c + (2 n + dv + 36) l) - 1).
//  dK_c     the same sum over the m queries that see key j, each with its own e: + m l.
//  dV_c     sum_i P_ij |dO_ic| (exp(e + m l) - 1).
//  underflow  a P below the smallest normal number may be lost, a product errs by less than that:
//           four times it stands for every P, times whatever P is multiplied with.
//
// Where a forward program of `updates` = U folds of a row left the statistics and O, and not the
// reference, those err by more (core/error_bound.hpp, 2 and 3): the statistics by 3 U l, O by 8 U
// l. So e grows by 3 U l, and delta by another 8 U l.
OracleGradients oracle_gradients(const Problem& problem, const Inputs& inputs,
                                 const TensorView<const double>& grad_o, Index batch, Index head,
                                 NumberFormat format, Index updates = 0);

// dO of the problem's shapes, standard normal and exact in fp32.
Tensor<double> normal_grad_o(const Problem& problem, std::uint64_t seed);

}  // namespace flashbound::testing
