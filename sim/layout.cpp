#include "sim/layout.hpp"

#include "core/errors.hpp"
#include "core/io_count.hpp"

#include <algorithm>
#include <cstddef>

namespace flashbound {
namespace {

Int128 round_up(Int128 bytes, Index line_bytes) {
  return checked_add(bytes, line_bytes - 1) / line_bytes * line_bytes;
}

Index within_limit(Int128 bytes) {
  if (bytes > kLayoutBytesMax) {
    reject("layout_bytes", to_decimal(bytes), "at most " + std::to_string(kLayoutBytesMax));
  }
  return static_cast<Index>(bytes);
}

Index length(Axis axis, const Problem& problem, const Sequence& sequence) {
  switch (axis) {
    case Axis::query: return sequence.seqlen_q;
    case Axis::key: return sequence.seqlen_kv;
    case Axis::head_dim: return problem.head_dim;
    case Axis::head_dim_v: return problem.head_dim_v;
    case Axis::one:
    case Axis::split: break;
  }
  return 1;
}

bool has_axis(const TensorDecl& tensor, Axis axis) {
  return std::find(tensor.axes.begin(), tensor.axes.end(), axis) != tensor.axes.end();
}

bool is_vector(const TensorDecl& tensor) { return tensor.axes.back() == Axis::one; }

struct MatrixBytes {
  Int128 row = 0;  // from a row to the next of a head's own
  Int128 all = 0;
};

MatrixBytes matrix_bytes(const TensorDecl& tensor, const MatrixLayout& matrix, Index element_bytes,
                         LayoutKind kind, Index line_bytes) {
  const bool padded = kind == LayoutKind::padded;
  Int128 row = checked_mul(matrix.cols, element_bytes);
  if (padded && !is_vector(tensor)) row = round_up(row, line_bytes);
  const Int128 all = checked_mul(matrix.rows, row);
  return {row, padded ? round_up(all, line_bytes) : all};
}

// Places one tensor from byte `begin` on.
TensorLayout place(const TensorDecl& declaration, const Problem& problem, const Tile& tile,
                   NumberFormat dtype, LayoutKind kind, Index line_bytes, Index begin) {
  TensorLayout t{.name = declaration.name, .begin = begin};
  t.element_bytes = element_bytes(declaration.width, dtype);
  const bool shared = declaration.role == TensorRole::input && has_axis(declaration, Axis::key) &&
                      !has_axis(declaration, Axis::query);
  t.heads_sharing = shared ? q_heads_per_kv_head(problem) : 1;
  t.heads = problem.num_heads_q / t.heads_sharing;
  t.splits = has_axis(declaration, Axis::split) ? tile.num_splits : 1;
  const bool rows_interleave = kind == LayoutKind::strided && !is_vector(declaration);
  const bool packed = !problem.cu_seqlens_q.empty();

  const std::size_t axes = declaration.axes.size();
  std::vector<MatrixBytes> bytes;
  Int128 one_head = 0;  // bytes of its matrices
  for (Index s = 0; s < (packed ? sequence_count(problem) : 1); ++s) {
    MatrixLayout m;
    m.rows = length(declaration.axes[axes - 2], problem, sequence(problem, s));
    m.cols = length(declaration.axes[axes - 1], problem, sequence(problem, s));
    t.sequences.push_back(m);
    bytes.push_back(matrix_bytes(declaration, m, t.element_bytes, kind, line_bytes));
    one_head = checked_add(one_head, bytes.back().all);
  }
  const Int128 one_split = checked_mul(t.heads, checked_mul(one_head, problem.batch));
  t.end = within_limit(checked_add(begin, checked_mul(t.splits, one_split)));
  t.split_stride = within_limit(one_split);
  t.sequence_stride = packed ? 0 : within_limit(checked_mul(t.heads, one_head));

  Int128 before = 0;  // bytes of one head's matrices of the sequences before
  for (std::size_t s = 0; s < bytes.size(); ++s) {
    MatrixLayout& m = t.sequences[s];
    const Index interleaved = rows_interleave ? t.heads : 1;
    m.begin = within_limit(checked_mul(interleaved, before));
    m.row_stride = within_limit(checked_mul(interleaved, bytes[s].row));
    m.head_stride = within_limit(rows_interleave ? bytes[s].row : one_head);
    before = checked_add(before, bytes[s].all);
  }
  return t;
}

}  // namespace

Layout layout(const Program& program, const Problem& problem, const Tile& tile, NumberFormat dtype,
              LayoutKind kind, Index line_bytes) {
  if (line_bytes < 1 || line_bytes > kLineBytesMax || (line_bytes & (line_bytes - 1)) != 0) {
    reject("line_bytes", std::to_string(line_bytes),
           "a power of two in [1, " + std::to_string(kLineBytesMax) + "]");
  }
  Layout result{.kind = kind, .line_bytes = line_bytes};
  for (const TensorDecl& declaration : program.tensors) {
    result.tensors.push_back(
        place(declaration, problem, tile, dtype, kind, line_bytes, result.bytes));
    result.bytes = within_limit(round_up(result.tensors.back().end, line_bytes));
  }
  return result;
}

Index address(const TensorLayout& tensor, const Place& place, Index row, Index col) {
  const MatrixLayout& m = tensor.matrix(place.sequence);
  return tensor.begin + place.split * tensor.split_stride +
         place.sequence * tensor.sequence_stride + m.begin +
         place.head / tensor.heads_sharing * m.head_stride + row * m.row_stride +
         col * tensor.element_bytes;
}

Segments segments(const TensorLayout& tensor, const Place& place, Interval rows, Interval cols) {
  if (rows.empty() || cols.empty()) return {};
  const Index first = address(tensor, place, rows.begin, cols.begin);
  const Index stride = tensor.matrix(place.sequence).row_stride;
  const Index bytes = cols.size() * tensor.element_bytes;
  if (bytes == stride) return {first, 1, 0, rows.size() * stride};
  return {first, rows.size(), stride, bytes};
}

Interval lines(const Segments& segments, Index segment, Index line_bytes) {
  const Index begin = segments.first + segment * segments.stride;
  return {begin / line_bytes, (begin + segments.bytes - 1) / line_bytes + 1};
}

}  // namespace flashbound
