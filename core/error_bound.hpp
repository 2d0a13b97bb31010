// How far a computed attention output may be from the exact one: an a-priori bound with every
// constant explicit. Two right answers differ by at most the sum of their bounds, which is where
// the tolerances of comparisons come from. No bound for online softmax with explicit constants was
// known to us; for the softmax alone see Blanchard, Higham and Higham 2021 (IMA J. Numer. Anal.
// 41(4), eq. 3.6), whose constants ours contain.
//
// THE STATEMENT. For one row (one query of one head) and a program that rounds as RoundingModel
// (core/rounding_model.hpp) says, with exact logits s_j, weights p_j = exp(s_j) / sum_i exp(s_i)
// and outputs O_c = sum_j p_j v_jc over the visible keys j,
//
//   |O^_c - O_c| <= (exp(e) - 1) sum_j p_j |v_jc| + t,
//   |O^_c - O_c| <= max_j v_jc - min_j v_jc + (exp(r_n + r_d + z) - 1) max_j,c |v_jc| + t,
//   |lse^ - lse| <= D + r_w + r_d + z + M,
//   e = 2 D + 2 r_w + r_n + r_d + z,
//
// and infinity where an intermediate value may overflow or an input is not finite. The symbols are
// derived below. "^" marks computed values, n is the number of visible keys plus one for a sink,
// and weights are in units in which the greatest is 1 (a recipe's offset is divided out).
//
// NOTATION. u is the unit roundoff of a format: s that of scores, m of row statistics, p of weights
// as operands, a of accumulators, o of stored tensors. An operation computes x(1 + t), |t| <= u.
// Such a factor lies in [exp(-l), exp(l)] with l = -log(1 - u), and so does its inverse; so c
// roundings of one quantity multiply it by at most exp(c l) and at least exp(-c l), without gamma
// constants and without O(u^2). A library function with an error of k u has l_k = -log(1 - k u)
// instead. A result below the normal numbers errs by at most h instead: the smallest subnormal, or
// the smallest normal number where subnormals are flushed.
//
// SUMS OF PRODUCTS. Terms are rounded in their product (not where it is exact) and in at most A
// additions: A = n in any order (an addition of zero is exact, and every other one joins two groups
// of terms), A = depth + tiles for pairwise sums of tiles. A tensor core that adds `block` terms to
// what it has, cutting each of block + 1 numbers below `bits` bits of the largest, errs by at most
// (block + 1) 2^(1 - bits) of all magnitudes together, and by 2u of the result in truncating it, so
// that ceil(n / block) blocks multiply the sum of magnitudes by at most
// exp(blocks (log(1 + cut) + l)). S(n) denotes the exponent.
//
// 1. LOGITS. D bounds |s^_j - s_j| over the visible keys. With G = max_j sum_c |q_c k_jc|:
//    - q.k, then rounded to a score, once a panel, then scaled by a converted scale:
//      X = (exp(S(head_dim) + (2 + panels) l_s) - 1) |scale| G.
//    - softcap c: tanh is 1-Lipschitz, so X passes through unamplified. Two conversions of c, a
//      quotient, a product, and tanh (l_tanh) are relative to |c tanh(x/c)| <= min(c, |x|); an
//      error of relative size g in tanh's argument is at most one of size g in its result.
//    - ALiBi: |slope distance| suffers two conversions and a product; the subtraction rounds once
//      its two operands' magnitudes.
//    - scores that pass through HBM are rounded to the stored format once more.
//    - a sink is a logit with one conversion.
//    - underflow adds at most h for each product, quotient and conversion.
//    Maxima are exact: m^ is one of the s^_j, or with conditional rescaling one that lies at most
//    `threshold` below the greatest. Statistics must not be narrower than scores for that.
//
// 2. WEIGHTS. Any program here gives key j the weight exp(s^_j - m^) as a product of exponentials:
//    one of s^_j less the running maximum, then one a rescale by exp(m_old - m_new). Since maxima
//    only rise, the arguments telescope: they add up to m^ - s^_j <= R, and their roundings to at
//    most k R u with k = 1, or 3 in base two (log2 e, difference, product). Where s and m are
//    scaled by log2 e apart (fma), the product m log2 e is rounded relative to |m|, not to R: u |m|
//    more. Merging normalised parts by their lse, as
//    split-kv does, adds log n to R. There are one exponential for the key (l_weight) and at most
//    U + 1 others (l_factor), U rescales and one to merge; U need not exceed 2 n, as a maximum
//    rises at most once a key, in folding and again in merging.
//    A part's lse^ is m + log(l) up to the log's error and the rounding of the sum:
//    M = l_log (log n + 1) + l_m (|lse| + log n + 1); it scales all of the part's weights alike.
//    Differences and logits that are flushed add h_s and h_m to arguments.
//    r_w = k R u + |m| u + l_weight + (U + 1) l_factor + M.
//
// 3. SUMS. The denominator: n additions and U + 1 products with factors, r_d = (n + U + 1) l_m. The
//    numerator: the weight rounded as an operand, its product with v and the sum over blocks,
//    rescales, the division and the store: r_n = l_p + S(n + U) + (U + 1) l_a + 3 l_a + l_o, with
//    2 U l_a + U l_o more where O is kept normalised in HBM (flash1), and l_s + l_o more where
//    weights pass through HBM (standard).
//    So O^_c = sum_j p_j f_j v_jc with |log f_j| <= e, and |f_j - 1| is at most exp(e) - 1.
//
// 4. LARGE LOGITS. When e is large the weights are not known, yet numerator and denominator use the
//    *same* computed exponentials, so O^ remains a convex combination of the visible values (and 0
//    with a sink) up to the roundings r_n + r_d that are not shared. Two convex combinations differ
//    by at most the spread of the values. Not so where the sum is of scores that were rounded
//    otherwise than those of the weights (small-cache, with scores stored in a narrower format), or
//    where stochastic rounding draws weights and their sum apart (standard-tiled): there the second
//    line is infinite, and a weight may reach exp(2 D).
//
// 5. UNDERFLOW. R need not exceed L = log(n / u) + 24: a key with m^ - s^_j > L weighs at most
//    exp(-L) in truth and as computed, so counting it as an absolute error of 2 exp(-L) costs less
//    than a rounding. To a weight its exponential may add h_weight and its rounding as an operand
//    h_p; a factor's h_factor multiplies all that has been accumulated, at most n exp(threshold).
//    Together they change the sum by w_d and O's numerator by w_n max|v|, in which products,
//    rescales, quotients and stores lose at most h each, n + 4 (U + 1) of them. The sum is at least
//    exp(-g), the greatest weight's own, with g = 0, or in base two u |m| + l_weight; so
//    z = -log(1 - exp(g + r_d) w_d), and t = exp(g + r_n + r_d + z) (w_n max|v| + ...). No later
//    factor magnifies them: rescales are at most 1, and where flash1 multiplies by the old sum it
//    divides by a new one that is no smaller than the old sum rescaled.
//
// 6. LSE. log-sum-exp is 1-Lipschitz in the largest change of a logit: D. The sum errs by the
//    factor exp(r_w + r_d + z), then M for the logarithm and the final sum.
//
// The quantities that depend on data (G, A_c = sum p|v|, extremes) are computed in fp64, whose own
// error is bounded by the same theorem and added.
#pragma once

#include "core/head_conditions.hpp"
#include "core/rounding_model.hpp"

namespace flashbound {

struct ErrorBound {
  RowMatrix o;          // seqlen_q x head_dim_v
  Eigen::VectorXd lse;  // seqlen_q
};

ErrorBound error_bound(const HeadConditions& conditions, const RoundingModel& model);

}  // namespace flashbound
