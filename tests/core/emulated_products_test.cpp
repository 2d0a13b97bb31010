// accumulate_rounded() on every SIMD target of this machine against plain loops.
#include "core/emulated_products.hpp"

#include <doctest/doctest.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace flashbound {
namespace {

// Dispatch to one target for the life of the object.
class OnTarget {
 public:
  explicit OnTarget(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
  }
  ~OnTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;
};

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> each;
  const std::int64_t all = hwy::SupportedTargets();
  for (int bit = 0; bit < 63; ++bit) {
    if ((all >> bit & 1) != 0) each.push_back(std::int64_t{1} << bit);
  }
  return each;
}

struct Size {
  Index rows, terms, cols;
};

template <class T>
struct Operands {
  Size size;
  std::vector<T> sum, a, b;
};

enum class Values { moderate, extreme };

// Numbers of the format; extreme ones reach its subnormals, its largest number and beyond: their
// products and sums overflow and underflow.
template <class T>
std::vector<T> numbers(std::mt19937_64& engine, const FloatFormat& format, Values values, Index n) {
  std::vector<T> result;
  const int low = values == Values::moderate ? -3 : format.exponent_min - 3;
  const int high = values == Values::moderate ? 3 : std::ilogb(format.largest) + 1;
  for (Index at = 0; at < n; ++at) {
    const int exponent =
        low + static_cast<int>(engine() % static_cast<std::uint64_t>(high - low + 1));
    const double significand = static_cast<double>(engine() >> 11) * 0x1p-52 - 1;
    result.push_back(static_cast<T>(round_to(format, std::ldexp(significand, exponent))));
    if (values == Values::extreme && engine() % 50 == 0) {
      result.back() = std::numeric_limits<T>::infinity();
    }
    if (values == Values::extreme && engine() % 90 == 0) {
      result.back() = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return result;
}

template <class T>
Operands<T> operands(std::uint64_t seed, const FloatFormat& format, Values values,
                     const Size& size) {
  std::mt19937_64 engine(seed);
  return {size, numbers<T>(engine, format, values, size.rows * size.cols),
          numbers<T>(engine, format, values, size.rows * size.terms),
          numbers<T>(engine, format, values, size.terms * size.cols)};
}

struct Formats {
  std::optional<FloatFormat> product;  // none: fused
  FloatFormat sum;
};

// The definition.
template <class T>
std::vector<T> by_definition(const Operands<T>& o, const Formats& formats) {
  std::vector<T> sum = o.sum;
  const auto at = [](Index row, Index cols, Index col) {
    return static_cast<std::size_t>(row * cols + col);
  };
  for (Index r = 0; r < o.size.rows; ++r) {
    for (Index c = 0; c < o.size.cols; ++c) {
      T& x = sum[at(r, o.size.cols, c)];
      for (Index k = 0; k < o.size.terms; ++k) {
        const T y = o.a[at(r, o.size.terms, k)];
        const T z = o.b[at(k, o.size.cols, c)];
        if (!formats.product) {
          x = std::fma(y, z, x);
          continue;
        }
        const T product = static_cast<T>(round_to(*formats.product, static_cast<double>(y * z)));
        x = static_cast<T>(round_to(formats.sum, static_cast<double>(x + product)));
      }
    }
  }
  return sum;
}

template <class T>
std::vector<T> by_lanes(const Operands<T>& o, const Formats& formats) {
  ProductRounding<T> rounding{.exact_product = !formats.product};
  if (formats.product) {
    rounding.product = *lane_rounding<T>(*formats.product);
    rounding.sum = *lane_rounding<T>(formats.sum);
  }
  std::vector<T> sum = o.sum;
  accumulate_rounded({sum.data(), o.size.rows, o.size.cols},
                     {o.a.data(), o.size.rows, o.size.terms},
                     {o.b.data(), o.size.terms, o.size.cols}, rounding);
  return sum;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  using Bits = typename LaneRounding<T>::Bits;
  for (std::size_t at = 0; at < a.size(); ++at) {
    if (std::isnan(a[at]) && std::isnan(b[at])) continue;  // which NaN is no promise
    if (std::bit_cast<Bits>(a[at]) != std::bit_cast<Bits>(b[at])) return false;
  }
  return a.size() == b.size();
}

// All combinations of the three kinds of rounding, and fused.
template <class T>
std::vector<Formats> all_formats() {
  const FloatFormat own = float_format(sizeof(T) == 4 ? NumberFormat::fp32 : NumberFormat::fp64);
  const FloatFormat bits = ieee_like(7, sizeof(T) == 4 ? 8 : 11);
  const std::vector<FloatFormat> kinds{own, bits, float_format(NumberFormat::fp16),
                                       float_format(NumberFormat::fp8e4m3)};
  std::vector<Formats> all{{std::nullopt, own}};
  for (const FloatFormat& product : kinds) {
    for (const FloatFormat& sum : kinds) all.push_back({product, sum});
  }
  return all;
}

template <class T>
void check(const Formats& formats, const Size& size, const std::vector<std::int64_t>& on) {
  const FloatFormat numbers_of = formats.product ? *formats.product : formats.sum;
  for (const Values values : {Values::moderate, Values::extreme}) {
    const Operands<T> o = operands<T>(static_cast<std::uint64_t>(size.cols * 31 + size.terms),
                                      numbers_of, values, size);
    const std::vector<T> expected = by_definition(o, formats);
    for (const std::int64_t target : on) {
      const OnTarget dispatch(target);
      if (same_bits(by_lanes(o, formats), expected)) continue;
      CAPTURE(std::string(hwy::TargetName(target)));
      CAPTURE(to_string(formats.sum));
      CAPTURE(formats.product.has_value());
      CAPTURE(size.rows);
      CAPTURE(size.terms);
      CAPTURE(size.cols);
      FAIL_CHECK("lanes differ from the definition");
    }
  }
}

}  // namespace

TEST_SUITE("core.emulated_products") {
  TEST_CASE_TEMPLATE("every target and kind of rounding gives the bits of plain loops", T, float,
                     double) {
    const std::vector<std::int64_t> on = targets();
    REQUIRE_FALSE(on.empty());
    for (const Formats& formats : all_formats<T>()) {
      for (Index cols = 1; cols <= 40; ++cols) {
        const Index rows = cols % 6 + 1;
        check<T>(formats, {rows, cols % 21, cols}, on);
        check<T>(formats, {7 - rows, (cols * 7) % 21, cols}, on);
      }
    }
  }

  TEST_CASE_TEMPLATE("every number of rows and terms around the edges of lanes", T, float, double) {
    const Formats formats{float_format(NumberFormat::fp16), float_format(NumberFormat::fp16)};
    for (const Index cols : {1, 2, 7, 8, 9, 16, 17, 31, 32, 33}) {
      for (Index rows = 1; rows <= 6; ++rows) {
        for (const Index terms : {0, 1, 2, 20}) check<T>(formats, {rows, terms, cols}, targets());
      }
    }
  }

  TEST_CASE("an empty matrix stays empty") {
    const Formats formats{std::nullopt, float_format(NumberFormat::fp32)};
    check<float>(formats, {0, 3, 5}, targets());
    check<float>(formats, {3, 4, 0}, targets());
  }
}

}  // namespace flashbound
