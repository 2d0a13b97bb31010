// Number formats by name, and how wide one element of each is in memory.
#pragma once

#include "core/int128.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace flashbound {

enum class NumberFormat { fp64, fp32, tf32, bf16, fp16, fp8e4m3, fp8e5m2 };

struct NumberFormatFacts {
  NumberFormat format;
  std::string_view name;
  Index bytes;           // of one element in memory; tf32 is stored in a 32-bit word
  int significand_bits;  // with the implicit leading one; unit roundoff = 2^-significand_bits
  int exponent_min;      // of the smallest normal number 2^exponent_min
};

// IEEE 754-2019 for fp64, fp32, fp16; OCP OFP8 1.0 for the two fp8; NVIDIA PTX ISA for tf32, bf16.
inline constexpr std::array<NumberFormatFacts, 7> kNumberFormats{{
    {NumberFormat::fp64, "fp64", 8, 53, -1022},
    {NumberFormat::fp32, "fp32", 4, 24, -126},
    {NumberFormat::tf32, "tf32", 4, 11, -126},
    {NumberFormat::bf16, "bf16", 2, 8, -126},
    {NumberFormat::fp16, "fp16", 2, 11, -14},
    {NumberFormat::fp8e4m3, "fp8e4m3", 1, 4, -6},
    {NumberFormat::fp8e5m2, "fp8e5m2", 1, 3, -14},
}};

constexpr const NumberFormatFacts& facts(NumberFormat format) {
  return kNumberFormats[static_cast<std::size_t>(format)];
}
constexpr std::string_view name(NumberFormat format) { return facts(format).name; }
constexpr Index byte_size(NumberFormat format) { return facts(format).bytes; }

// Unit roundoff u of rounding to nearest: |round(x) - x| <= u |x| for normal results.
constexpr double unit_roundoff(NumberFormat format) {
  double u = 1.0;
  for (int bit = 0; bit < facts(format).significand_bits; ++bit) u /= 2;
  return u;
}

// nullopt when no format has this name.
constexpr std::optional<NumberFormat> number_format_named(std::string_view name) {
  for (const NumberFormatFacts& entry : kNumberFormats) {
    if (entry.name == name) return entry.format;
  }
  return std::nullopt;
}

}  // namespace flashbound
