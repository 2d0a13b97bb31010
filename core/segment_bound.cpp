#include "core/segment_bound.hpp"

#include "core/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace flashbound {
namespace {

constexpr Int128 kProductWordsMax = Int128{1} << 40;  // three times which, cubed, fits
constexpr Int128 kWordsMax = Int128{1} << 58;  // whose square times a head_dim fits in 128 bits

// Columns of what scores contract, and of what weights multiply.
std::pair<Index, Index> widths(Index head_dim, Index head_dim_v, Pass pass) {
  return pass == Pass::forward ? std::pair{head_dim, head_dim_v} : std::pair{head_dim_v, head_dim};
}

// Segment lengths worth trying: M, at which the quadratic term is best; where the two terms of the
// maximum meet, which is best for a smaller M; and some around them.
std::vector<Int128> lengths(Int128 memory, Int128 meeting) {
  std::vector<Int128> tried;
  for (const Int128 centre : {memory, meeting - memory}) {
    for (const Index eighths : {1, 2, 4, 6, 7, 8, 9, 10, 12, 16}) {
      tried.push_back(centre * eighths / 8);
    }
  }
  return tried;
}

// The least root with root^2 >= square, where 0 <= square < 2^126.
Int128 root_rounded_up(Int128 square) {
  auto root = static_cast<Int128>(std::sqrt(static_cast<long double>(square)));
  while (root * root >= square && root > 0) --root;
  while (root * root < square) ++root;
  return root;
}

}  // namespace

std::string_view name(ComputationClass computation) {
  return computation == ComputationClass::scores ? "scores" : "values";
}

Int128 segment_advance(Index head_dim, Index head_dim_v, ComputationClass computation, Int128 words,
                       Pass pass) {
  const auto [d, dv] = widths(head_dim, head_dim_v, pass);
  const Int128 square = checked_mul(words, words);
  if (computation == ComputationClass::scores) {
    return std::max(square / (Int128{4} * d * d), words);
  }
  return std::max(checked_mul(square, dv) / (Int128{4} * d * (d + dv)), words * dv);
}

SegmentBound segment_bound(const Problem& problem, NumberFormat dtype, Bytes fast_memory,
                           ComputationClass computation, Pass pass, Index fast_memories) {
  const Index word = byte_size(dtype);
  const auto [d, dv] = widths(problem.head_dim, problem.head_dim_v, pass);
  const bool values = computation == ComputationClass::values;
  const Int128 work = checked_mul(visible_pairs(problem).value(), values ? dv : 1);
  const Int128 memory = fast_memory.value() / word;
  const Int128 meeting = Int128{4} * d * (values ? d + dv : d);
  SegmentBound best{.computation = computation};
  for (const Int128 length : lengths(memory, meeting)) {
    if (length < 1 || memory + length > kWordsMax || work == 0) continue;
    const Int128 advance =
        segment_advance(problem.head_dim, problem.head_dim_v, computation, memory + length, pass);
    const Int128 segments = (work - 1) / advance + 1;
    if (segments <= fast_memories) continue;
    // All but the last segment of each memory are full, and no segment is empty.
    const Int128 reads = checked_add(checked_mul(segments - fast_memories, length), 1);
    const Bytes read(checked_mul(reads, word));
    if (read > best.read) best = {computation, read, Bytes(length * word)};
  }
  return best;
}

Int128 segment_products(Index contracted, Int128 memory, Int128 moves) {
  const Int128 words = 2 * memory + moves;
  const Int128 cube = words * words * words;
  const Int128 carried = root_rounded_up((cube + 26) / 27);
  const Int128 begun = (memory + moves) * (memory + moves) / (Int128{4} * contracted) + 1;
  return carried + begun;
}

ProductBound product_bound(const Problem& problem, NumberFormat dtype, Bytes fast_memory, Pass pass,
                           Index fast_memories) {
  const Index word = byte_size(dtype);
  const Index contracted = widths(problem.head_dim, problem.head_dim_v, pass).first;
  const Int128 work = checked_mul(visible_pairs(problem).value(), contracted);
  const Int128 memory = fast_memory.value() / word;
  ProductBound best;
  if (memory > kProductWordsMax || work == 0) return best;
  for (const Index eighths : {1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40}) {
    const Int128 moves = memory * eighths / 8;
    if (moves < 1 || moves > kProductWordsMax) continue;
    const Int128 segments = (work - 1) / segment_products(contracted, memory, moves) + 1;
    if (segments <= fast_memories) continue;
    const Int128 moved = checked_add(checked_mul(segments - fast_memories, moves), 1);
    const Bytes bytes(checked_mul(moved, word));
    if (bytes > best.moved) best = {bytes, Bytes(moves * word)};
  }
  return best;
}

}  // namespace flashbound
