#include "core/int128.hpp"

#include <algorithm>

namespace flashbound {

std::string to_decimal(Int128 value) {
  if (value == static_cast<Index>(value)) return std::to_string(static_cast<Index>(value));
  const bool negative = value < 0;
  std::string digits;
  // Peel digits off the signed value: the most negative one has no positive counterpart.
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    digits.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
  }
  if (negative) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace flashbound
