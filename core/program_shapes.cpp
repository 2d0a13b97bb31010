#include "core/program_shapes.hpp"

namespace flashbound {
namespace {

constexpr Extent kOneColumn{Axis::one, kNone};

std::string unless_shaped(const TileDecl& tile, const Extent& rows, const Extent& cols) {
  if (tile.rows == rows && tile.cols == cols) return "";
  return "the shape of tile '" + tile.name + "' does not fit the others";
}

std::string first_of(const std::string& one, const std::string& other) {
  return one.empty() ? other : one;
}

std::string unless_scores(const TileDecl& tile) {
  if (tile.rows.axis == Axis::query && tile.cols.axis == Axis::key) return "";
  return "tile '" + tile.name + "' is not a tile of scores";
}

}  // namespace

Takes takes_a(Op op) {
  if (op == Op::logits) return Takes::nothing;
  return op == Op::logits_gradient ? Takes::perhaps : Takes::always;
}

Takes takes_b(Op op) {
  switch (op) {
    case Op::multiply_transposed:
    case Op::multiply_left_transposed:
    case Op::multiply:
    case Op::scale_add:
    case Op::row_dot:
    case Op::softmax_gradient:
    case Op::lse: return Takes::always;
    case Op::row_max_update:
    case Op::logits_gradient: return Takes::perhaps;
    default: return Takes::nothing;
  }
}

std::string misfit(Op op, const TileDecl& result, const TileDecl* a, const TileDecl* b) {
  const TileDecl& r = result;
  switch (op) {
    case Op::logits: return unless_scores(r);
    case Op::multiply_transposed:
      return first_of(unless_shaped(r, a->rows, b->rows), unless_shaped(*b, b->rows, a->cols));
    case Op::multiply_left_transposed:
      return first_of(unless_shaped(r, a->cols, b->cols), unless_shaped(*b, a->rows, b->cols));
    case Op::multiply:
      return first_of(unless_shaped(r, a->rows, b->cols), unless_shaped(*b, a->cols, b->cols));
    case Op::row_max_update:
      return first_of(unless_shaped(r, a->rows, kOneColumn),
                      b == nullptr ? "" : unless_shaped(*b, a->rows, kOneColumn));
    case Op::row_sum_update: return unless_shaped(r, a->rows, kOneColumn);
    case Op::exponentiate:
    case Op::rescale:
    case Op::divide: return unless_shaped(*a, r.rows, kOneColumn);
    case Op::scale_add:
      return first_of(unless_shaped(*a, r.rows, kOneColumn), unless_shaped(*b, r.rows, r.cols));
    case Op::lse:
      return first_of(
          unless_shaped(*a, r.rows, kOneColumn),
          first_of(unless_shaped(r, r.rows, kOneColumn), unless_shaped(*b, r.rows, kOneColumn)));
    case Op::row_dot:
      return first_of(unless_shaped(r, a->rows, kOneColumn), unless_shaped(*b, a->rows, a->cols));
    case Op::softmax_gradient:
      return first_of(unless_scores(r), first_of(unless_shaped(*a, r.rows, r.cols),
                                                 unless_shaped(*b, r.rows, kOneColumn)));
    case Op::logits_gradient:
      if (a == nullptr || b == nullptr) {
        return a == b ? unless_scores(r) : "only one of the operands a and b is there";
      }
      return first_of(unless_scores(r), first_of(unless_shaped(*a, r.rows, a->cols),
                                                 unless_shaped(*b, r.cols, a->cols)));
    default: return "not a computation";
  }
}

}  // namespace flashbound
