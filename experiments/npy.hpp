// NumPy's .npy files, parsed strictly and never unpickled (NEP 1; versions 1.0, 2.0 and 3.0).
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace flashbound {

// Element types that are read: little-endian floats, and one-byte or wider integers for masks and
// offsets. Big-endian, complex, structured and object arrays are rejected by name.
enum class NpyType { f2, f4, f8, u1, b1, i4, i8 };

// A parsed array: floats widened to fp64 exactly, integers to int64. Elements are in C order,
// whatever the file's.
struct NpyArray {
  NpyType type = NpyType::f8;
  std::vector<Index> shape;
  std::vector<double> floats;          // of f2, f4, f8
  std::vector<std::int64_t> integers;  // of the others

  bool is_float() const {
    return type == NpyType::f2 || type == NpyType::f4 || type == NpyType::f8;
  }
};

// Parses a whole file's bytes; `name` is used in errors. Throws ConfigError "NAME: what is wrong".
NpyArray parse_npy(const std::string& bytes, const std::string& name);

// Reads and parses. Throws IoError when the file cannot be read, ConfigError for what is no .npy.
NpyArray read_npy(const std::string& path);

// A float array of four axes as a tensor. Throws ConfigError for another type or rank.
Tensor<double> tensor_of(NpyArray array, const std::string& name);

// Writes `tensor` as `type` (f2, f4 or f8), each value rounded to nearest even.
void write_npy(std::ostream& out, const Tensor<double>& tensor, NpyType type);

// "float16", "uint8", ...: as NumPy calls it.
const char* name(NpyType type);

}  // namespace flashbound
