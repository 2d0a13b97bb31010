// Strong units: a quantity of one unit neither mixes with nor converts to another by accident.
// Values are exact 128-bit integers; overflow throws CountOverflow.
#pragma once

#include "core/int128.hpp"

#include <compare>
#include <string>

namespace flashbound {

template <class Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Int128 value) : value_(value) {}

  constexpr Int128 value() const { return value_; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(checked_add(a.value_, b.value_));
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(checked_sub(a.value_, b.value_));
  }
  friend constexpr Quantity operator*(Int128 n, Quantity a) {
    return Quantity(checked_mul(n, a.value_));
  }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
  friend constexpr bool operator==(Quantity, Quantity) = default;
  friend constexpr std::strong_ordering operator<=>(Quantity a, Quantity b) {
    return a.value_ < b.value_   ? std::strong_ordering::less
           : a.value_ > b.value_ ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
  }

  // The plain number a / b, for printing.
  friend double ratio(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Int128 value_ = 0;
};

using Elements =
    Quantity<struct ElementsUnit>;  // numbers in a tensor or tile, whatever their width
using Bytes = Quantity<struct BytesUnit>;
using Flops = Quantity<struct FlopsUnit>;    // a multiplication or an addition each count one
using Events = Quantity<struct EventsUnit>;  // exponentials, rescales, block visits

template <class Unit>
std::string to_string(Quantity<Unit> quantity) {
  return to_decimal(quantity.value());
}

// The one crossing between units that the counts need.
constexpr Bytes bytes_of(Elements elements, Index bytes_per_element) {
  return Bytes(checked_mul(elements.value(), bytes_per_element));
}

}  // namespace flashbound
