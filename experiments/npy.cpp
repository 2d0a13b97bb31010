#include "experiments/npy.hpp"

#include "core/errors.hpp"
#include "experiments/io_error.hpp"
#include "experiments/npy_header.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <type_traits>

namespace flashbound {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are read as they lie");

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double load_float(NpyType type, const char* at) {
  switch (type) {
    case NpyType::f2:
      return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(load<std::uint16_t>(at)));
    case NpyType::f4: return static_cast<double>(load<float>(at));
    default: return load<double>(at);
  }
}

std::int64_t load_integer(NpyType type, const char* at) {
  switch (type) {
    case NpyType::u1:
    case NpyType::b1: return load<std::uint8_t>(at);
    case NpyType::i4: return load<std::int32_t>(at);
    default: return load<std::int64_t>(at);
  }
}

// Where element `index` of a C-order walk lies in a Fortran-order file.
std::size_t fortran_position(std::size_t index, const std::vector<Index>& shape) {
  std::size_t position = 0;
  std::size_t stride = 1;
  for (const Index length : shape) stride *= static_cast<std::size_t>(length);
  std::size_t step = 1;
  for (const Index length : shape) {
    stride /= static_cast<std::size_t>(length);
    position += index / stride * step;
    index %= stride;
    step *= static_cast<std::size_t>(length);
  }
  return position;
}

NpyArray read_elements(const NpyHeader& header, const char* data) {
  NpyArray array{header.type, header.shape, {}, {}};
  const std::size_t width = byte_width(header.type);
  const auto count = static_cast<std::size_t>(header.elements);
  if (array.is_float()) {
    array.floats.reserve(count);
  } else {
    array.integers.reserve(count);
  }
  for (std::size_t index = 0; index < count; ++index) {
    const std::size_t at = header.fortran_order ? fortran_position(index, header.shape) : index;
    if (array.is_float()) {
      array.floats.push_back(load_float(header.type, data + at * width));
    } else {
      array.integers.push_back(load_integer(header.type, data + at * width));
    }
  }
  return array;
}

// Refuses what the file's size does not bear out, before anything of the claimed size is made.
void require_size(const NpyHeader& header, std::size_t file_bytes, const std::string& name) {
  const std::size_t wanted = static_cast<std::size_t>(header.elements) * byte_width(header.type);
  const std::size_t there = file_bytes - header.data_begin;
  if (there != wanted) {
    throw ConfigError(name + ": " + std::to_string(there) + " bytes of elements: must be " +
                      std::to_string(wanted) + " for its shape" +
                      (there < wanted ? " (truncated file?)" : ""));
  }
}

[[noreturn]] void fail_to_read(const std::string& path) {
  throw IoError("cannot read " + path + ": " +
                (errno != 0 ? std::strerror(errno) : "it changed while being read"));
}

std::string read_bytes(std::istream& in, std::size_t count, const std::string& path) {
  std::string bytes(count, '\0');
  errno = 0;
  if (!in.read(bytes.data(), static_cast<std::streamsize>(count))) fail_to_read(path);
  return bytes;
}

template <class T>
void write_elements(std::ostream& out, const std::vector<double>& values) {
  for (const double value : values) {
    T element;
    if constexpr (std::is_same_v<T, Eigen::half>) {
      element = round_to_half(value);
    } else {
      element = static_cast<T>(value);
    }
    out.write(reinterpret_cast<const char*>(&element), sizeof element);
  }
}

}  // namespace

NpyArray parse_npy(const std::string& bytes, const std::string& name) {
  const NpyHeader header = parse_npy_header(bytes, name);
  require_size(header, bytes.size(), name);
  return read_elements(header, bytes.data() + header.data_begin);
}

NpyArray read_npy(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) throw ConfigError(path + ": is a folder: must be a .npy file");
  // The size of a device or pipe, which may never end, is not known before it is read.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw ConfigError(path + ": is a device or pipe: must be a .npy file");
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail_to_read(path);
  const auto size = static_cast<std::size_t>(fs::file_size(path, ignored));
  const std::string beginning =
      read_bytes(in, std::min(size, kNpyBeforeTextMax + kNpyHeaderTextMax), path);
  const NpyHeader header = parse_npy_header(beginning, path);
  require_size(header, size, path);
  in.seekg(static_cast<std::streamoff>(header.data_begin));
  const std::string elements = read_bytes(in, size - header.data_begin, path);
  return read_elements(header, elements.data());
}

Tensor<double> tensor_of(NpyArray array, const std::string& name) {
  if (!array.is_float()) {
    reject(name + " dtype", flashbound::name(array.type), "float16, float32 or float64");
  }
  if (array.shape.size() != 4) {
    reject(name + " rank", std::to_string(array.shape.size()),
           "4 (batch, heads, seqlen, head_dim)");
  }
  Tensor<double> tensor;
  for (std::size_t axis = 0; axis < 4; ++axis) tensor.shape[axis] = array.shape[axis];
  tensor.elements = std::move(array.floats);
  return tensor;
}

void write_npy(std::ostream& out, const Tensor<double>& tensor, NpyType type) {
  const std::string header = npy_header(tensor.shape, type);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  switch (type) {
    case NpyType::f2: return write_elements<Eigen::half>(out, tensor.elements);
    case NpyType::f4: return write_elements<float>(out, tensor.elements);
    default: return write_elements<double>(out, tensor.elements);
  }
}

}  // namespace flashbound
