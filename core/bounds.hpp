// What no algorithm avoids moving, what the visible pairs alone cost, and what has been published
// about the rest. Only the compulsory bound is a bound: published expressions are asymptotic, so
// that their values carry no constant and nothing is ever compared with them as a limit.
#pragma once

#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/units.hpp"

#include <array>
#include <string_view>

namespace flashbound {

// Elements that must cross the HBM boundary at least once, however large the fast memory, which
// starts empty. Over all sequences and heads:
//   q_read     rows of Q (head_dim) with a visible key, each query head
//   k_read     rows of K (head_dim) that some query sees, once for all query heads of a group
//   v_read     the same rows of V (head_dim_v)
//   o_written  rows of O (head_dim_v) whose query sees a key; the others are zero, and an
//              algorithm whose O starts as zeros (flash1) never writes them
// Rows that nobody sees and queries that see nothing need not be read: the mask is known without
// data. A query that sees one key must be read although the weight of that key is always 1,
// because a NaN in it reaches O. The lse is not counted: attention is O, and lse a by-product that
// only some algorithms write.
//
// Of a backward pass, where fast memory starts empty as well:
//   q_read, k_read, v_read  the same rows: dK needs those of Q, dQ those of K, and dP those of V
//   grad_o_read     rows of dO (head_dim_v) whose query sees a key, each query head
//   grad_q_written  rows of dQ (head_dim) whose query sees a key, each query head; the others are
//                   zero, and an algorithm whose dQ starts as zeros never writes them
//   grad_k_written, grad_v_written  rows of dK (head_dim) and dV (head_dim_v) whose key some query
//                   sees, once for all query heads of a group: dK and dV are the group's sums
// What a forward pass left (O, lse, row statistics, P) is not counted: all of it follows from Q, K
// and V, so that an algorithm may compute it again instead of reading it.
struct CompulsoryBound {
  Elements q_read{};
  Elements k_read{};
  Elements v_read{};
  Elements o_written{};
  Elements grad_o_read{};
  Elements grad_q_written{};
  Elements grad_k_written{};
  Elements grad_v_written{};
  Index element_bytes = 0;  // all have the width of dtype

  Elements read() const { return q_read + k_read + v_read + grad_o_read; }
  Elements written() const { return o_written + grad_q_written + grad_k_written + grad_v_written; }
  Bytes read_bytes() const { return bytes_of(read(), element_bytes); }
  Bytes write_bytes() const { return bytes_of(written(), element_bytes); }
  Bytes bytes() const { return read_bytes() + write_bytes(); }
  friend bool operator==(const CompulsoryBound&, const CompulsoryBound&) = default;
};

// Time as for closed_form(). `problem` is valid.
CompulsoryBound compulsory_bound(const Problem& problem, NumberFormat dtype,
                                 Pass pass = Pass::forward);

// Query-key pairs that the mask shows, over all sequences and query heads, exactly.
Elements visible_pairs(const Problem& problem);

// FLOPs of the matrix products over visible pairs. Forward the two of S and O:
// 2 (head_dim + head_dim_v) a pair. Backward the four of dV, dP, dQ and dK: twice that; computing S
// again is one more, which who keeps P avoids. Products over whole tiles do no fewer.
Flops flops_useful(const Problem& problem, Pass pass = Pass::forward);

// What an expression says: that the algorithm it is named after moves so much (attained), that
// every exact algorithm must (lower), or both for the best algorithm (tight).
enum class BoundKind { attained, lower, tight };

// One published asymptotic expression, for one square head with head_dim = head_dim_v and without
// a mask. In words (elements); M is the fast memory in words.
struct PublishedBound {
  std::string_view name;
  std::string_view expression;  // without its hidden constant
  BoundKind kind = BoundKind::attained;
  std::string_view domain;  // of M, as published
  std::string_view source;
  bool in_domain = false;  // whether M lies in it
  double value = 0;        // of the expression, also outside its domain
};

// seqlen, head_dim >= 1, sram >= 1 element. Sources:
//   Dao, Fu, Ermon, Rudra, Re 2022, arXiv 2205.14135, Theorem 2 and Proposition 3
//   Saha, Ye 2024, arXiv 2402.07443 (abstract; the two cases of its main result)
std::array<PublishedBound, 5> published_bounds(Index seqlen, Index head_dim, Elements sram);

}  // namespace flashbound
