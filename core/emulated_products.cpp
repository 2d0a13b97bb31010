#include "core/emulated_products.hpp"

// One build for each of these; a few suffice, since all compute the same bits.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming): Highway's name
#define HWY_TARGET_INCLUDE "core/emulated_products.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace flashbound::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// round_lane() on lanes.
template <LaneKind kind, class D>
class LaneRounder {
 public:
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  explicit LaneRounder(const LaneRounding<T>& rounding) : rounding_(rounding) {}

  HWY_INLINE V operator()(V x) const {
    if constexpr (kind == LaneKind::none) return x;
    const D d;
    const hn::RebindToUnsigned<D> du;
    using Bits = hn::TFromD<decltype(du)>;
    const auto bits = hn::BitCast(du, x);
    const auto odd = hn::And(hn::ShiftRightSame(bits, rounding_.shift), hn::Set(du, Bits{1}));
    const auto half_below = hn::Set(du, static_cast<Bits>((Bits{1} << (rounding_.shift - 1)) - 1));
    const auto mask = hn::Set(du, static_cast<Bits>(~((Bits{1} << rounding_.shift) - 1)));
    V result = hn::BitCast(d, hn::And(hn::Add(bits, hn::Add(half_below, odd)), mask));
    if constexpr (kind == LaneKind::narrow) {
      const V magnitude = hn::Abs(x);
      const V magic = hn::Set(d, rounding_.magic);
      const V subnormal = hn::CopySign(hn::Sub(hn::Add(magnitude, magic), magic), x);
      const auto small = hn::Lt(magnitude, hn::Set(d, rounding_.smallest_normal));
      result = hn::IfThenElse(small, subnormal, result);
      const auto large = hn::Gt(hn::Abs(result), hn::Set(d, rounding_.largest));
      result = hn::IfThenElse(large, hn::CopySign(hn::Set(d, rounding_.beyond), x), result);
    }
    return result;
  }

 private:
  LaneRounding<T> rounding_;
};

// sum + a b where only the sum is rounded, in the carrier.
template <class D>
struct FusedTerm {
  using V = hn::Vec<D>;
  HWY_INLINE V operator()(V sum, V a, V b) const {
#if HWY_NATIVE_FMA
    return hn::MulAdd(a, b, sum);
#else
    // MulAdd would round the product; the library's fma is slow and right.
    using T = hn::TFromD<D>;
    const D d;
    HWY_ALIGN T s[hn::MaxLanes(D())], x[hn::MaxLanes(D())], y[hn::MaxLanes(D())];
    hn::Store(sum, d, s);
    hn::Store(a, d, x);
    hn::Store(b, d, y);
    for (size_t lane = 0; lane < hn::Lanes(d); ++lane)
      s[lane] = std::fma(x[lane], y[lane], s[lane]);
    return hn::Load(d, s);
#endif
  }
};

template <class Product, class Sum>
struct RoundedTerm {
  Product product;
  Sum sum_rounder;
  template <class V>
  HWY_INLINE V operator()(V sum, V a, V b) const {
    return sum_rounder(hn::Add(sum, product(hn::Mul(a, b))));
  }
};

// kRows x 2 vectors of sums stay in registers while all terms pass: enough independent chains to
// hide the latency of two operations and two roundings.
template <int kRows, class D, class Term>
HWY_INLINE void accumulate_tile(D d, const Term& term, MatrixView<hn::TFromD<D>> sum,
                                MatrixView<const hn::TFromD<D>> a,
                                MatrixView<const hn::TFromD<D>> b, Index row, Index col) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  V low[kRows];
  V high[kRows];
  for (int r = 0; r < kRows; ++r) {
    low[r] = hn::LoadU(d, sum.elements + (row + r) * sum.cols + col);
    high[r] = hn::LoadU(d, sum.elements + (row + r) * sum.cols + col + lanes);
  }
  for (Index k = 0; k < a.cols; ++k) {
    const V b_low = hn::LoadU(d, b.elements + k * b.cols + col);
    const V b_high = hn::LoadU(d, b.elements + k * b.cols + col + lanes);
    for (int r = 0; r < kRows; ++r) {
      const V a_rk = hn::Set(d, a.elements[(row + r) * a.cols + k]);
      low[r] = term(low[r], a_rk, b_low);
      high[r] = term(high[r], a_rk, b_high);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(low[r], d, sum.elements + (row + r) * sum.cols + col);
    hn::StoreU(high[r], d, sum.elements + (row + r) * sum.cols + col + lanes);
  }
}

template <class D, class Term>
void accumulate_columns(D d, const Term& term, MatrixView<hn::TFromD<D>> sum,
                        MatrixView<const hn::TFromD<D>> a, MatrixView<const hn::TFromD<D>> b,
                        Index first, Index last) {
  const Index step = 2 * static_cast<Index>(hn::Lanes(d));
  for (Index col = first; col + step <= last; col += step) {
    Index row = 0;
    for (; row + 4 <= sum.rows; row += 4) accumulate_tile<4>(d, term, sum, a, b, row, col);
    for (; row < sum.rows; ++row) accumulate_tile<1>(d, term, sum, a, b, row, col);
  }
}

template <class T, template <class> class MakeTerm>
void accumulate_all(const ProductRounding<T>& rounding, MatrixView<T> sum, MatrixView<const T> a,
                    MatrixView<const T> b) {
  const hn::ScalableTag<T> wide;
  const hn::CappedTag<T, 1> single;
  const Index step = 2 * static_cast<Index>(hn::Lanes(wide));
  const Index in_vectors = sum.cols / step * step;
  accumulate_columns(wide, MakeTerm<decltype(wide)>::make(rounding), sum, a, b, 0, in_vectors);
  // The last columns two by two, and the very last alone.
  const Index in_pairs = sum.cols / 2 * 2;
  const auto term = MakeTerm<decltype(single)>::make(rounding);
  accumulate_columns(single, term, sum, a, b, in_vectors, in_pairs);
  if (in_pairs == sum.cols) return;
  for (Index row = 0; row < sum.rows; ++row) {
    T& element = sum.elements[row * sum.cols + in_pairs];
    auto s = hn::Set(single, element);
    for (Index k = 0; k < a.cols; ++k) {
      s = term(s, hn::Set(single, a.elements[row * a.cols + k]),
               hn::Set(single, b.elements[k * b.cols + in_pairs]));
    }
    element = hn::GetLane(s);
  }
}

template <LaneKind product_kind, LaneKind sum_kind>
struct Rounded {
  template <class D>
  struct Make {
    using Product = LaneRounder<product_kind, D>;
    using Sum = LaneRounder<sum_kind, D>;
    static RoundedTerm<Product, Sum> make(const ProductRounding<hn::TFromD<D>>& rounding) {
      return {Product(rounding.product), Sum(rounding.sum)};
    }
  };
};
template <class D>
struct Fused {
  static FusedTerm<D> make(const ProductRounding<hn::TFromD<D>>& /*rounding*/) { return {}; }
};

template <LaneKind product_kind, class T>
void dispatch_sum(const ProductRounding<T>& rounding, MatrixView<T> sum, MatrixView<const T> a,
                  MatrixView<const T> b) {
  switch (rounding.sum.kind) {
    case LaneKind::none:
      return accumulate_all<T, Rounded<product_kind, LaneKind::none>::template Make>(rounding, sum,
                                                                                     a, b);
    case LaneKind::bits:
      return accumulate_all<T, Rounded<product_kind, LaneKind::bits>::template Make>(rounding, sum,
                                                                                     a, b);
    case LaneKind::narrow:
      return accumulate_all<T, Rounded<product_kind, LaneKind::narrow>::template Make>(rounding,
                                                                                       sum, a, b);
  }
}

template <class T>
void dispatch_product(const ProductRounding<T>& rounding, MatrixView<T> sum, MatrixView<const T> a,
                      MatrixView<const T> b) {
  if (rounding.exact_product) return accumulate_all<T, Fused>(rounding, sum, a, b);
  switch (rounding.product.kind) {
    case LaneKind::none: return dispatch_sum<LaneKind::none>(rounding, sum, a, b);
    case LaneKind::bits: return dispatch_sum<LaneKind::bits>(rounding, sum, a, b);
    case LaneKind::narrow: return dispatch_sum<LaneKind::narrow>(rounding, sum, a, b);
  }
}

void accumulate_float(MatrixView<float> sum, MatrixView<const float> a, MatrixView<const float> b,
                      const ProductRounding<float>& rounding) {
  dispatch_product(rounding, sum, a, b);
}
void accumulate_double(MatrixView<double> sum, MatrixView<const double> a,
                       MatrixView<const double> b, const ProductRounding<double>& rounding) {
  dispatch_product(rounding, sum, a, b);
}

}  // namespace flashbound::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace flashbound {

HWY_EXPORT(accumulate_float);
HWY_EXPORT(accumulate_double);

void accumulate_rounded(MatrixView<float> sum, MatrixView<const float> a, MatrixView<const float> b,
                        const ProductRounding<float>& rounding) {
  HWY_DYNAMIC_DISPATCH(accumulate_float)(sum, a, b, rounding);
}
void accumulate_rounded(MatrixView<double> sum, MatrixView<const double> a,
                        MatrixView<const double> b, const ProductRounding<double>& rounding) {
  HWY_DYNAMIC_DISPATCH(accumulate_double)(sum, a, b, rounding);
}

}  // namespace flashbound
#endif  // HWY_ONCE
