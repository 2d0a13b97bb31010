// Where every tensor of a program lies in one flat address space of bytes, for a whole problem.
//
// A tensor holds one matrix for each split, sequence and head. Inputs with a key axis and no query
// axis (k, v) have one for each key/value head, which the query heads of its group share; all other
// tensors have one for each query head. Tensors follow each other in the program's order, each from
// a multiple of the line.
#pragma once

#include "core/mask.hpp"
#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/program.hpp"

#include <string>
#include <vector>

namespace flashbound {

// Order of the axes, after a leading split axis where there is one. Vectors of row statistics (one
// column) are (batch, heads, seqlen) in every layout, as kernels keep lse. Packed sequences share
// one batch entry: sequence s begins where its lengths in cu_seqlens say; a matrix (query, key)
// follows that of the sequence before it.
enum class LayoutKind {
  contiguous,  // (batch, heads, rows, columns)
  strided,     // (batch, rows, heads, columns): rows of a head are heads * columns elements apart
  padded,      // contiguous, each row (or whole vector) filled up to a multiple of the line
};

// The matrices of one sequence, one for each head.
struct MatrixLayout {
  Index rows = 0;
  Index cols = 0;
  Index begin = 0;        // bytes from the tensor's first to that of head 0 and split 0
  Index head_stride = 0;  // bytes from head to head
  Index row_stride = 0;   // bytes from row to row
  friend bool operator==(const MatrixLayout&, const MatrixLayout&) = default;
};

struct TensorLayout {
  std::string name{};
  Index begin = 0;  // bytes [begin, end) of the address space; begin is a multiple of the line
  Index end = 0;
  Index element_bytes = 0;
  Index heads = 1;          // matrices for each sequence and split
  Index heads_sharing = 1;  // query heads that share one of them
  Index splits = 1;
  Index split_stride = 0;                 // bytes from split to split
  Index sequence_stride = 0;              // of sequences that are all alike
  std::vector<MatrixLayout> sequences{};  // by packed sequence; without packing one for all

  const MatrixLayout& matrix(Index sequence) const {
    return sequences[sequences.size() == 1 ? 0 : static_cast<std::size_t>(sequence)];
  }
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

struct Layout {
  LayoutKind kind = LayoutKind::contiguous;
  Index line_bytes = 0;
  Index bytes = 0;  // of the whole address space, from 0; a multiple of the line
  std::vector<TensorLayout> tensors{};  // in the program's order
  friend bool operator==(const Layout&, const Layout&) = default;
};

inline constexpr Index kLineBytesMax = Index{1} << 30;
inline constexpr Index kLayoutBytesMax = Index{1} << 62;

// `problem` and `tile` are valid. Throws ConfigError for a line that is no power of two in
// [1, kLineBytesMax], and where the tensors need more than kLayoutBytesMax bytes.
Layout layout(const Program& program, const Problem& problem, const Tile& tile, NumberFormat dtype,
              LayoutKind kind, Index line_bytes);

// Which matrix of a tensor.
struct Place {
  Index sequence = 0;
  Index head = 0;  // a query head
  Index split = 0;
};

// Bytes from 0 to the element (row, col).
Index address(const TensorLayout& tensor, const Place& place, Index row, Index col);

// A region of a matrix as runs of bytes: `count` of `bytes` bytes each, `stride` bytes apart. Rows
// that follow each other in memory without a gap are one run.
struct Segments {
  Index first = 0;  // address of the first byte
  Index count = 0;
  Index stride = 0;
  Index bytes = 0;
  friend bool operator==(const Segments&, const Segments&) = default;
};
Segments segments(const TensorLayout& tensor, const Place& place, Interval rows, Interval cols);

// The lines [begin, end) that segment number `segment` meets; line n holds the bytes from
// n * line_bytes on.
Interval lines(const Segments& segments, Index segment, Index line_bytes);

}  // namespace flashbound
