// The header of a .npy file: a magic, a version, a length and a Python dictionary in plain text.
#pragma once

#include "experiments/npy.hpp"

#include <Eigen/Core>

#include <array>
#include <cstddef>

namespace flashbound {

// Longer headers are refused: NumPy's own have some hundred bytes.
inline constexpr std::size_t kNpyHeaderTextMax = 1 << 16;
// Magic, version and length, which come before the text.
inline constexpr std::size_t kNpyBeforeTextMax = 12;

struct NpyHeader {
  NpyType type = NpyType::f8;
  bool fortran_order = false;
  std::vector<Index> shape;
  Index elements = 0;          // product of the shape, which fits the file
  std::size_t data_begin = 0;  // first byte after the header
};

std::size_t byte_width(NpyType type);

// `bytes` is a file's beginning: whole, or at least as long as any header. Throws ConfigError
// naming the file and what is wrong with it.
NpyHeader parse_npy_header(const std::string& bytes, const std::string& name);

// The header of a C-order file, version 1.0, padded to 64 bytes as NumPy writes it.
std::string npy_header(const std::array<Index, 4>& shape, NpyType type);

// fp64 to fp16 in one rounding; through fp32, as Eigen converts, there would be two.
Eigen::half round_to_half(double value);

}  // namespace flashbound
