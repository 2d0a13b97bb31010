// How far a computed attention output may be from the exact one: an a-priori bound with every
// constant explicit. Two right answers differ by at most the sum of their bounds, which is where
// the tolerances of comparisons come from.
//
// THE STATEMENT. For one row (one query of one head) and a program that rounds as RoundingModel
// says, with exact logits s_j, weights p_j = exp(s_j) / sum_i exp(s_i) and outputs
// O_c = sum_j p_j v_jc over the visible keys j,
//
//   |O^_c - O_c|    <= (exp(e) - 1) sum_j p_j |v_jc| + t           where e <= 1,
//   |O^_c - O_c|    <= max_j v_jc - min_j v_jc + (exp(r) - 1) max_j,c |v_jc| + t,
//   |lse^ - lse|    <= D + a + log-evaluation,
//
// and infinity where an intermediate value may overflow or an input is not finite. The symbols are
// derived below. "^" marks computed values, n is the number of visible keys plus one for a sink.
//
// NOTATION. u is the unit roundoff; an operation computes x(1 + t), |t| <= u. Such a factor lies in
// [exp(-l), exp(l)] with l = -log(1 - u), and so does its inverse; so c roundings of one quantity
// multiply it by at most exp(c l) and at least exp(-c l), without gamma constants. A library
// function with an error of k u has l_k = -log(1 - k u) instead. A product, quotient or conversion
// whose result is subnormal errs by at most h, the smallest subnormal number, instead.
//
// 1. LOGITS. D bounds |s^_j - s_j| over the visible keys. With G = max_j sum_c |q_c k_jc|:
//    - q.k in any order, then scale (or scale first): each term is rounded in its product, in at
//      most head_dim - 1 additions, by the scale's conversion and by the scaling, so
//      X = (exp((head_dim + 2) l) - 1) |scale| G. (FMA rounds less.)
//    - softcap c: tanh is 1-Lipschitz, so X passes through unamplified. Two conversions of c, a
//      quotient, a product, and tanh (k_tanh) are relative to |c tanh(x/c)| <= min(c, |x|); an
//      error of relative size g in tanh's argument is at most one of size g in its result.
//    - ALiBi: |slope distance| suffers two conversions and a product; the subtraction rounds once
//      its two operands' magnitudes.
//    - a sink is a logit with one conversion.
//    - underflow adds at most h for each product, quotient and conversion.
//    Maxima are exact: m^ is one of the s^_j.
//
// 2. WEIGHTS. Any program here gives key j the weight exp(s^_j - m^) as a product of exponentials:
//    one of s^_j less the running maximum, then one a rescale by exp(m_old - m_new). Since maxima
//    only rise, the arguments telescope: they add up to m^ - s^_j, and their roundings to at most
//    R u, where R bounds m^ - s^_j. Merging normalised parts by their lse, as split-kv does, adds
//    log n to R. There are at most U + 2 exponentials (one for the key, one to merge, U rescales),
//    each erring by l_exp, and at most U + 1 products by such factors. Here U need not exceed 2 n:
//    a maximum rises at most once a key, in folding and again in merging.
//    A part's lse^ is m + log(l) up to the log's error and the rounding of the sum:
//    M = l_log (log n + 1) + l (|lse| + log n + 1); it scales all of the part's weights alike.
//
// 3. SUMS. Whatever the order and the blocks, a sum of n terms rounds each term at most n - 1 times
//    (an addition of zero is exact, and every other one joins two groups of terms).
//    With r_w = R u + (U + 2) l_exp + (U + 1) l + n l + M, the numerator's weights err by a factor
//    within exp(D + r_w), likewise the denominator's, and the numerator rounds in the product with
//    v, in two quotients, and twice more at every step where O is kept normalised (flash1). So
//    O^_c = sum_j p_j f_j v_jc with |log f_j| <= e,
//    e = 2 D + 2 r_w + (3 + 2 U) l + (what underflow takes from the sum); and |f_j - 1| is at most
//    exp(e) - 1.
//
// 4. LARGE LOGITS. When e > 1 the weights are not known, yet numerator and denominator use the
//    *same* computed exponentials, so O^ remains a convex combination of the visible values (and 0
//    with a sink) up to the roundings r = 2 (U + 1 + n) l + n l + (3 + 2 U) l that are not shared.
//    Two convex combinations differ by at most the spread of the values.
//
// 5. UNDERFLOW. Nothing in a weight's chain underflows unless m^ - s^_j + log n > 0.98 times the
//    logarithm of the smallest normal number; so for other keys R need not exceed that logarithm.
//    A weight below w = n exp(-0.98 ...) may be lost entirely: n such weights change O by at most
//    2 exp(1) n w max|v| and, since the sum is at least 1 (the maximum's own weight), the sum by a
//    factor within 1 - 2 n w. Products with v, rescales and quotients of O lose at most h each:
//    n (1 + max|v|) + 4 (U + 1) of them, times exp(1) for the factors that follow. No later factor
//    magnifies them: rescales are at most 1, and where flash1 multiplies by the old sum it divides
//    by a new one that is no smaller than the old sum rescaled. Together they are t.
//
// 6. LSE. log-sum-exp is 1-Lipschitz in the largest change of a logit: D. The sum errs by the
//    factor exp(a), a = r_w + (what underflow takes), then M for the logarithm and the final sum.
//
// The quantities that depend on data (G, A_c = sum p|v|, extremes) are computed in fp64, whose own
// error is bounded by the same theorem and added.
#pragma once

#include "core/number_format.hpp"
#include "core/reference.hpp"

#include <vector>

namespace flashbound {

// The arithmetic of a program, and how often it touches a row.
struct RoundingModel {
  double unit_roundoff = 0;  // u
  double smallest_normal = 0;
  double largest_finite = 0;
  // Errors of library functions, in u; one ulp is at most 2 u. The GNU C library manual (Known
  // Maximum Errors in Math Functions) lists 1 ulp for exp and log and 2 ulp for tanh on x86_64.
  // Known errors are not proven ones: tanh, the least accurate, is granted a third. Over all fp32
  // arguments that occur here the worst are 1.0 u (exp), 1.4 u (log) and 2.9 u (tanh).
  double exp_error = 2;
  double log_error = 2;
  double tanh_error = 6;
  Index updates = 0;  // U: times a row is folded, rescaled or merged, at most
};

// The reference's own arithmetic: fp64, no rescales.
RoundingModel reference_rounding();
// What covers every program of core/programs/ on this schedule, run by the numeric machine in
// `format`: fp64 or fp32 (others throw ConfigError). Inputs must be exact in the format.
RoundingModel program_rounding(NumberFormat format, const Schedule& schedule);

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

struct ErrorBound {
  RowMatrix o;          // seqlen_q x head_dim_v
  Eigen::VectorXd lse;  // seqlen_q
};

ErrorBound error_bound(const HeadConditions& conditions, const RoundingModel& model);

}  // namespace flashbound
