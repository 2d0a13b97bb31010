// Lower bounds on what must be read into a fast memory of M bytes, with explicit constants, for
// algorithms that compute attention by its products (Hong and Kung's argument, 1981, in the form of
// Irony, Toledo and Tiskin, 2004, with constants of our own). Derived in core/closed_forms.md.
//
// Which algorithms a bound holds for, whatever their order, tiles and recomputation:
//   scores  every score of a visible pair is a sum of its own head_dim products q_ik k_jk, each
//           formed while both factors are in fast memory; a word that holds a partial sum, a score
//           or a weight belongs to one pair.
//   values  besides, every output is made of its own products w_ij v_jk, each formed while v_jk and
//           a word of the pair are in fast memory.
// Elements of Q, K and V and words of pairs take at least the bytes of dtype.
//
// A segment is an execution's part with X reads. With S = M + X words to work on it advances at
// most
//   scores:  max(S^2 / (4 d^2), S) pairs            so that reads >= N^2 d^2 / M - M
//   values:  max(S^2 / (4 d (d + dv)), S) pairs     so that reads >= N^2 d (d + dv) / M - M
// in words, for one square head without a mask, M >= 2 d^2 and M >= 2 d (d + dv). The second is
// twice the first where d = dv. The best schedule known reads about 4 N^2 d^2 / M.
//
// Backward, the same holds with dO and V for Q and K: dP_ij sums head_dim_v products dO_ik v_jk,
// and dQ is made of products dS_ij k_jk.
#pragma once

#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/units.hpp"

#include <string_view>

namespace flashbound {

enum class ComputationClass { scores, values };

std::string_view name(ComputationClass computation);

// The most that a segment of `words` words advances: pairs under `scores`; under `values` products
// with V (or K, backward), head_dim_v (head_dim) of which make a pair. words <= 2^58.
Int128 segment_advance(Index head_dim, Index head_dim_v, ComputationClass computation, Int128 words,
                       Pass pass = Pass::forward);

struct SegmentBound {
  ComputationClass computation = ComputationClass::values;
  Bytes read{};     // at least so many, over all fast memories; 0 where the bound says nothing
  Bytes segment{};  // X of the segments that show it
};

// The best over a choice of X; every X is valid. `fast_memories` of `fast_memory` bytes each share
// the work. Beyond 2^58 words nothing is said. `problem` is valid.
SegmentBound segment_bound(const Problem& problem, NumberFormat dtype, Bytes fast_memory,
                           ComputationClass computation, Pass pass = Pass::forward,
                           Index fast_memories = 1);

// The same argument for the single products of scores, after Loomis and Whitney 1949: what counts
// when M is less than d^2, and whole rows do not fit. A segment now has X moves, reads and writes.
// With a words of Q and b of K it forms at most sqrt(a b c) products of the c pairs whose partial
// sums are carried into it or out of it, and a b / d of pairs that it begins and finishes, which
// need whole rows. a, b and carried words together are at most 2 M + X, so that it forms at most
//   ((2 M + X) / 3)^1.5 + (M + X)^2 / (4 d)
// of the N^2 d products there are: moves >= sqrt(2) N^2 d / sqrt(M) - 4 M for M much less than d^2,
// with X = 4 M. For algorithms of the class `scores`.
struct ProductBound {
  Bytes moved{};  // at least so many are read and written, over all fast memories; 0: nothing said
  Bytes segment{};  // X of the segments that show it
};

// The most products of that many words a segment of `moves` words moved forms; both <= 2^40.
Int128 segment_products(Index contracted, Int128 memory, Int128 moves);

ProductBound product_bound(const Problem& problem, NumberFormat dtype, Bytes fast_memory,
                           Pass pass = Pass::forward, Index fast_memories = 1);

}  // namespace flashbound
