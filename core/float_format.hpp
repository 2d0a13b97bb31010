// Number formats as arithmetic: which numbers exist, and how a real is rounded to one of them.
//
// A format is a set of binary floating-point numbers: significand_bits (the implicit one included),
// normal exponents exponent_min .. (that of `largest`), subnormals or none, and what becomes of
// results beyond `largest`. Rounding is described for reals that are given exactly as a double.
#pragma once

#include "core/number_format.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flashbound {

enum class Overflow { infinity, saturate, nan };

struct FloatFormat {
  int significand_bits = 53;  // p; unit roundoff of rounding to nearest is 2^-p
  int exponent_min = -1022;   // smallest normal number 2^exponent_min
  double largest = 0;         // largest finite number
  bool subnormals = true;     // without: what rounds to a subnormal becomes a zero of its sign
  Overflow overflow = Overflow::infinity;
  friend bool operator==(const FloatFormat&, const FloatFormat&) = default;
};

// fp64, fp32, tf32, bf16, fp16 overflow to infinity (IEEE 754), fp8e5m2 too, and fp8e4m3, which has
// no infinity, saturates at 448 as conversions for inference do (OCP OFP8 1.0, section 5.2).
FloatFormat float_format(NumberFormat format);
// IEEE-like: 1 sign bit, `exponent_bits` (2..11) and `mantissa_bits` (1..52); else ConfigError.
FloatFormat ieee_like(int mantissa_bits, int exponent_bits);

// "bf16" and the other names of --dtype; "m10" has 10 mantissa bits and fp64's exponents; "m3e4"
// is ieee_like(3, 4). A suffix "/saturate", "/infinity" or "/nan", and a suffix "/flush" (no
// subnormals), change what the name says. Throws ConfigError naming `field` for anything else.
FloatFormat parse_float_format(std::string_view field, std::string_view text);
// The text that parses back to the format: its --dtype name where it has one (before a suffix),
// else the shortest. Throws ConfigError for a format that parse_float_format cannot make.
std::string to_string(const FloatFormat& format);

double unit_roundoff(const FloatFormat& format);
double smallest_normal(const FloatFormat& format);
// The smallest positive number: subnormal where the format has those.
double smallest_positive(const FloatFormat& format);
// Distance between the format's neighbours around x: 2^(e - p + 1) for 2^e <= |x| < 2^(e+1), at
// least the spacing of the subnormals. NaN where x is not finite.
double ulp(const FloatFormat& format, double x);

enum class Rounding { nearest_even, toward_zero, stochastic };
// In the order of the enumerators.
inline constexpr std::array<std::string_view, 3> kRoundingNames{"nearest_even", "toward_zero",
                                                                "stochastic"};
constexpr std::string_view name(Rounding rounding) {
  return kRoundingNames[static_cast<std::size_t>(rounding)];
}

// Random bits that depend on a seed and a position alone, for stochastic rounding (SplitMix64).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t z = seed + (position + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// x rounded to the format; its sign stays, that of a zero too. NaN stays, infinity stays where the
// format has one (overflow == infinity) and otherwise obeys `overflow`, in every rounding.
//
// Overflow is judged after rounding to significand_bits without an upper limit: a result above
// `largest` overflows. For IEEE formats that is |x| >= largest + ulp / 2, since the last bit of
// `largest` is odd and the tie goes up. For fp8e4m3 it is |x| > 464: 448 = 1.110b x 2^8 is even, so
// the tie between it and 480 goes down (the two saturate alike; they differ with "/nan").
//
// Toward zero never overflows from a finite x: it gives the largest number. Stochastic: away from
// zero with the probability t / 2^32, t = floor(2^32 d), where d is |x|'s distance from the number
// below it, in spacings; precisely where (random >> 32) < t, so numbers of the format stay.
double round_to(const FloatFormat& format, Rounding rounding, double x, std::uint64_t random = 0);
inline double round_to(const FloatFormat& format, double x) {
  return round_to(format, Rounding::nearest_even, x);
}

}  // namespace flashbound
