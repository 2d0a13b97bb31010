#include "core/float_format.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace flashbound {
namespace {

constexpr int kMantissaBitsMax = 52;  // those of a double, in which results are given
constexpr int kExponentBitsMin = 2;   // one bit leaves no exponent between zero and infinity
constexpr int kExponentBitsMax = 11;
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kImplicitBit = std::uint64_t{1} << 52;

// 2^exponent, also where it is a subnormal double.
double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

// A finite positive double as significand x 2^(biased - 1075). Subnormal doubles share the exponent
// of the smallest normal ones and lack the implicit bit.
struct Magnitude {
  std::uint64_t significand;
  int biased;
};

Magnitude magnitude(std::uint64_t bits) {
  const int biased = static_cast<int>(bits >> 52);
  const std::uint64_t fraction = bits & (kImplicitBit - 1);
  return biased == 0 ? Magnitude{fraction, 1} : Magnitude{fraction | kImplicitBit, biased};
}

// Adding lets a significand that was rounded up to 2^53 carry into the exponent: of the largest
// exponent, to infinity.
double from_magnitude(Magnitude m) {
  if (m.significand == 0) return 0;
  const auto exponent = static_cast<std::uint64_t>(m.biased - 1) << 52;
  return std::bit_cast<double>(exponent + m.significand);
}

// remainder / 2^dropped in steps of 2^-32, rounded down. The significand has 53 bits at most.
std::uint64_t chance_up(std::uint64_t remainder, int dropped) {
  if (dropped <= 32) return remainder << (32 - dropped);
  return dropped - 32 < 64 ? remainder >> (dropped - 32) : 0;
}

bool rounds_up(Rounding rounding, std::uint64_t kept, std::uint64_t remainder, int dropped,
               std::uint64_t random) {
  switch (rounding) {
    case Rounding::toward_zero: return false;
    case Rounding::stochastic: return (random >> 32) < chance_up(remainder, dropped);
    case Rounding::nearest_even: break;
  }
  if (dropped > 53) return false;  // less than half, whatever the significand
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  return remainder > half || (remainder == half && (kept & 1) != 0);
}

// A positive x to significand_bits, with spacing of subnormals, with no upper limit but fp64's.
double rounded(const FloatFormat& format, Rounding rounding, double x, std::uint64_t random) {
  Magnitude m = magnitude(std::bit_cast<std::uint64_t>(x));
  // The last bit kept is worth 2^(max(e, exponent_min) - p + 1), m's last bit 2^(e - 52).
  const int below_normal = format.exponent_min + 1023 - m.biased;
  const int dropped = 53 - format.significand_bits + (below_normal > 0 ? below_normal : 0);
  if (dropped == 0) return x;
  const std::uint64_t kept = dropped < 64 ? m.significand >> dropped : 0;
  const std::uint64_t remainder = dropped < 64 ? m.significand - (kept << dropped) : m.significand;
  const bool up = rounds_up(rounding, kept, remainder, dropped, random);
  // Far below the smallest positive number, where 2^dropped exceeds the significand's 53 bits,
  // one step up is that number.
  if (dropped > 53) return up ? power_of_two(format.exponent_min - format.significand_bits + 1) : 0;
  m.significand = (kept + (up ? 1 : 0)) << dropped;
  return from_magnitude(m);
}

double beyond_largest(const FloatFormat& format) {
  switch (format.overflow) {
    case Overflow::infinity: return std::numeric_limits<double>::infinity();
    case Overflow::saturate: return format.largest;
    case Overflow::nan: break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double rounded_magnitude(const FloatFormat& format, Rounding rounding, double x,
                         std::uint64_t random) {
  if (std::isinf(x)) return beyond_largest(format);
  const double result = rounded(format, rounding, x, random);
  if (result > format.largest) {
    return rounding == Rounding::toward_zero ? format.largest : beyond_largest(format);
  }
  if (!format.subnormals && result < smallest_normal(format)) return 0;
  return result;
}

void require_bits(const std::string& field, int value, int low, int high) {
  if (value >= low && value <= high) return;
  reject(field, std::to_string(value),
         "from " + std::to_string(low) + " to " + std::to_string(high));
}

// ---- Texts

// A decimal number without sign or leading zero at the start of `text`, which loses it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  if (text.empty() || text.front() < '1' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char letter) {
  if (text.empty() || text.front() != letter) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<FloatFormat> format_of_bits(std::string_view text) {
  if (!take(text, 'm')) return std::nullopt;
  const std::optional<int> mantissa_bits = take_number(text);
  if (!mantissa_bits || *mantissa_bits > kMantissaBitsMax) return std::nullopt;
  if (text.empty()) return ieee_like(*mantissa_bits, kExponentBitsMax);
  if (!take(text, 'e')) return std::nullopt;
  const std::optional<int> exponent_bits = take_number(text);
  if (!exponent_bits || !text.empty()) return std::nullopt;
  if (*exponent_bits < kExponentBitsMin || *exponent_bits > kExponentBitsMax) return std::nullopt;
  return ieee_like(*mantissa_bits, *exponent_bits);
}

std::optional<FloatFormat> format_of_name(std::string_view text) {
  if (const auto named = number_format_named(text)) return float_format(*named);
  return format_of_bits(text);
}

constexpr std::array<std::pair<std::string_view, Overflow>, 3> kOverflowSuffixes{{
    {"infinity", Overflow::infinity},
    {"saturate", Overflow::saturate},
    {"nan", Overflow::nan},
}};

std::optional<Overflow> overflow_of_suffix(std::string_view suffix) {
  for (const auto& [text, overflow] : kOverflowSuffixes) {
    if (suffix == text) return overflow;
  }
  return std::nullopt;
}

// nullopt for what is no format, a suffix given twice included.
std::optional<FloatFormat> format_of_text(std::string_view text) {
  std::size_t slash = text.find('/');
  std::optional<FloatFormat> format = format_of_name(text.substr(0, slash));
  bool overflow_given = false;
  while (format && slash != std::string_view::npos) {
    text.remove_prefix(slash + 1);
    slash = text.find('/');
    const std::string_view suffix = text.substr(0, slash);
    if (suffix == "flush" && format->subnormals) {
      format->subnormals = false;
    } else if (const auto overflow = overflow_of_suffix(suffix); overflow && !overflow_given) {
      format->overflow = *overflow;
      overflow_given = true;
    } else {
      return std::nullopt;
    }
  }
  return format;
}

// What of `format` a name without suffix can say; nullopt where `base` differs in more.
std::optional<std::string> suffixes(const FloatFormat& format, const FloatFormat& base) {
  FloatFormat changed = base;
  changed.overflow = format.overflow;
  changed.subnormals = format.subnormals;
  if (changed != format) return std::nullopt;
  std::string text;
  for (const auto& [suffix, overflow] : kOverflowSuffixes) {
    if (overflow == format.overflow && overflow != base.overflow) text += "/" + std::string(suffix);
  }
  return format.subnormals ? text : text + "/flush";
}

}  // namespace

FloatFormat float_format(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp64: return ieee_like(52, 11);
    case NumberFormat::fp32: return ieee_like(23, 8);
    case NumberFormat::tf32: return ieee_like(10, 8);
    case NumberFormat::bf16: return ieee_like(7, 8);
    case NumberFormat::fp16: return ieee_like(10, 5);
    case NumberFormat::fp8e5m2: return ieee_like(2, 5);
    case NumberFormat::fp8e4m3: break;
  }
  // Not IEEE-like: of the largest exponent's codes only the last one is NaN, so numbers go on
  // beyond 240.
  return {.significand_bits = 4,
          .exponent_min = -6,
          .largest = 448,
          .subnormals = true,
          .overflow = Overflow::saturate};
}

FloatFormat ieee_like(int mantissa_bits, int exponent_bits) {
  require_bits("mantissa_bits", mantissa_bits, 1, kMantissaBitsMax);
  require_bits("exponent_bits", exponent_bits, kExponentBitsMin, kExponentBitsMax);
  const int exponent_max = (1 << (exponent_bits - 1)) - 1;  // also the bias
  return {.significand_bits = mantissa_bits + 1,
          .exponent_min = 1 - exponent_max,
          .largest = (2 - power_of_two(-mantissa_bits)) * power_of_two(exponent_max),
          .subnormals = true,
          .overflow = Overflow::infinity};
}

FloatFormat parse_float_format(std::string_view field, std::string_view text) {
  if (const auto format = format_of_text(text)) return *format;
  std::string names;
  for (const NumberFormatFacts& entry : kNumberFormats) names += std::string(entry.name) + ", ";
  reject(std::string(field), std::string(text),
         names +
             "m1 to m52 (mantissa bits), m1e2 to m52e11 (and exponent bits), then at most one of "
             "/saturate, /infinity, /nan, and /flush or not");
}

std::string to_string(const FloatFormat& format) {
  for (const NumberFormatFacts& entry : kNumberFormats) {
    const auto suffix = suffixes(format, float_format(entry.format));
    if (suffix) return std::string(entry.name) + *suffix;
  }
  const int mantissa_bits = format.significand_bits - 1;
  for (int bits = kExponentBitsMax; bits >= kExponentBitsMin; --bits) {
    if (mantissa_bits < 1 || mantissa_bits > kMantissaBitsMax) break;
    const auto suffix = suffixes(format, ieee_like(mantissa_bits, bits));
    if (!suffix) continue;
    const std::string name = "m" + std::to_string(mantissa_bits);
    return (bits == kExponentBitsMax ? name : name + "e" + std::to_string(bits)) + *suffix;
  }
  reject("float format",
         std::to_string(format.significand_bits) + " significand bits up to " +
             std::to_string(format.largest),
         "one that parse_float_format makes");
}

double unit_roundoff(const FloatFormat& format) { return power_of_two(-format.significand_bits); }

double smallest_normal(const FloatFormat& format) { return power_of_two(format.exponent_min); }

double smallest_positive(const FloatFormat& format) {
  if (!format.subnormals) return smallest_normal(format);
  return power_of_two(format.exponent_min - format.significand_bits + 1);
}

double ulp(const FloatFormat& format, double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  const int exponent = x == 0 ? format.exponent_min : std::max(std::ilogb(x), format.exponent_min);
  return power_of_two(exponent - format.significand_bits + 1);
}

double round_to(const FloatFormat& format, Rounding rounding, double x, std::uint64_t random) {
  if (std::isnan(x) || x == 0) return x;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double result =
      rounded_magnitude(format, rounding, std::bit_cast<double>(bits & ~kSignBit), random);
  return std::signbit(x) ? -result : result;
}

}  // namespace flashbound
