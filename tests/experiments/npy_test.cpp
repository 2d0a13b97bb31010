// Arrays written and read back are the same, and orders, versions and types mean what NumPy says.
#include "experiments/npy.hpp"

#include "experiments/io_error.hpp"
#include "tests/experiments/npy_bytes.hpp"
#include "tests/experiments/rejection.hpp"
#include "tests/experiments/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

namespace flashbound {
namespace {

using testing::contains;
using testing::npy_bytes;
using testing::npy_dictionary;
using testing::raw;
using testing::rejection;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor<double> tensor_with(std::array<Index, 4> shape, std::vector<double> elements) {
  Tensor<double> tensor(shape);
  tensor.elements = std::move(elements);
  return tensor;
}

std::string written(const Tensor<double>& tensor, NpyType type) {
  std::ostringstream out;
  write_npy(out, tensor, type);
  return out.str();
}

// The same bits, so that signs of zero count and NaN equals itself.
void check_same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i]));
  }
}

TEST_SUITE("experiments.npy") {
  TEST_CASE("a tensor written in a type that holds its values reads back equal") {
    const std::vector<double> values{0.0,      -0.0,      1.0,        -2.5,   65504.0, 0x1p-24,
                                     -0x1p-14, kInfinity, -kInfinity, 1024.0, 3.0,     -0.125};
    for (const NpyType type : {NpyType::f2, NpyType::f4, NpyType::f8}) {
      CAPTURE(std::string(name(type)));
      const Tensor<double> tensor = tensor_with({1, 2, 3, 2}, values);
      const NpyArray array = parse_npy(written(tensor, type), "x.npy");
      CHECK(array.type == type);
      CHECK(array.shape == std::vector<Index>{1, 2, 3, 2});
      CHECK(array.integers.empty());
      check_same_bits(array.floats, values);
      const Tensor<double> back = tensor_of(array, "x.npy");
      CHECK(back.shape == tensor.shape);
      check_same_bits(back.elements, values);
    }
  }

  TEST_CASE("fp64 keeps every bit and narrower types round to nearest even") {
    const std::vector<double> values{
        0x1.fffffffffffffp+1023, 0x1p-1074, 1.0 / 3, 0x1.000001p0, 0x1.000003p0, 1e300};
    check_same_bits(parse_npy(written(tensor_with({1, 1, 6, 1}, values), NpyType::f8), "x").floats,
                    values);
    // fp32 has 24 bits: the two ties go to the even neighbour.
    const std::vector<double> narrow =
        parse_npy(written(tensor_with({1, 1, 6, 1}, values), NpyType::f4), "x").floats;
    CHECK(narrow[0] == kInfinity);
    CHECK(narrow[1] == 0);
    CHECK(narrow[2] == static_cast<double>(1.0F / 3.0F));
    CHECK(narrow[3] == 1.0);
    CHECK(narrow[4] == 0x1.000004p0);
  }

  TEST_CASE("NaN stays NaN in every type") {
    for (const NpyType type : {NpyType::f2, NpyType::f4, NpyType::f8}) {
      CAPTURE(std::string(name(type)));
      const Tensor<double> tensor =
          tensor_with({1, 1, 1, 1}, {std::numeric_limits<double>::quiet_NaN()});
      CHECK(std::isnan(parse_npy(written(tensor, type), "x").floats.at(0)));
    }
  }

  TEST_CASE("the header is padded to 64 bytes as NumPy pads it") {
    const std::string bytes = written(tensor_with({1, 1, 1, 1}, {1.0}), NpyType::f4);
    CHECK(bytes.size() == 128 + 4);
    CHECK(bytes.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
    CHECK(bytes.substr(10, 62) == "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1)");
    CHECK(bytes[127] == '\n');
    for (const Index length : {Index{0}, Index{9}, Index{99999}, Index{1} << 40}) {
      const std::string padded = written(Tensor<double>({length, 0, 1, 1}), NpyType::f2);
      CAPTURE(length);
      CHECK(padded.size() % 64 == 0);
      CHECK(parse_npy(padded, "x").shape == std::vector<Index>{length, 0, 1, 1});
    }
  }

  TEST_CASE("Fortran order stores the first axis fastest") {
    const std::vector<Index> shape{2, 3, 4, 5};
    std::vector<double> stored(2 * 3 * 4 * 5);
    const auto value = [](Index a, Index b, Index c, Index d) {
      return static_cast<double>(1000 * a + 100 * b + 10 * c + d);
    };
    for (Index a = 0; a < 2; ++a) {
      for (Index b = 0; b < 3; ++b) {
        for (Index c = 0; c < 4; ++c) {
          for (Index d = 0; d < 5; ++d) {
            stored[static_cast<std::size_t>(a + 2 * (b + 3 * (c + 4 * d)))] = value(a, b, c, d);
          }
        }
      }
    }
    const NpyArray array =
        parse_npy(npy_bytes(npy_dictionary("<f8", "(2, 3, 4, 5)", true), raw(stored)), "x");
    const Tensor<double> tensor = tensor_of(array, "x");
    for (Index a = 0; a < 2; ++a) {
      for (Index b = 0; b < 3; ++b) {
        for (Index c = 0; c < 4; ++c) {
          for (Index d = 0; d < 5; ++d) CHECK(tensor.view()(a, b, c, d) == value(a, b, c, d));
        }
      }
    }
  }

  TEST_CASE("Fortran order of one axis or none is C order") {
    const std::vector<double> values{3, 1, 2};
    CHECK(parse_npy(npy_bytes(npy_dictionary("<f8", "(3,)", true), raw(values)), "x").floats ==
          values);
    CHECK(parse_npy(npy_bytes(npy_dictionary("<f8", "()", true), raw<double>({7})), "x").floats ==
          std::vector<double>{7});
  }

  TEST_CASE("all three versions are read") {
    for (int major = 1; major <= 3; ++major) {
      CAPTURE(major);
      const NpyArray array =
          parse_npy(npy_bytes(npy_dictionary("<f4", "(2,)"), raw<float>({1.5F, -2}), major), "x");
      CHECK(array.floats == std::vector<double>{1.5, -2});
    }
  }

  TEST_CASE("integers widen with their signs") {
    const auto integers = [](const std::string& descr, const std::string& elements) {
      return parse_npy(npy_bytes(npy_dictionary(descr, "(3,)"), elements), "x").integers;
    };
    CHECK(integers("|u1", raw<std::uint8_t>({0, 127, 255})) ==
          std::vector<std::int64_t>{0, 127, 255});
    CHECK(integers("|b1", raw<std::uint8_t>({0, 1, 1})) == std::vector<std::int64_t>{0, 1, 1});
    CHECK(integers("<i4", raw<std::int32_t>({-1, 2147483647, -2147483647 - 1})) ==
          std::vector<std::int64_t>{-1, 2147483647, -2147483648});
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(integers("<i8", raw<std::int64_t>({-1, most, -most - 1})) ==
          std::vector<std::int64_t>{-1, most, -most - 1});
  }

  TEST_CASE("a tensor has four axes of floats") {
    const NpyArray three =
        parse_npy(npy_bytes(npy_dictionary("<f4", "(1, 1, 1)"), raw<float>({1})), "x");
    CHECK(rejection([&] { tensor_of(three, "q.npy"); }) ==
          "q.npy rank = 3: must be 4 (batch, heads, seqlen, head_dim)");
    const NpyArray whole =
        parse_npy(npy_bytes(npy_dictionary("<i4", "(1, 1, 1, 1)"), raw<std::int32_t>({1})), "x");
    CHECK(contains(rejection([&] { tensor_of(whole, "q.npy"); }), "q.npy dtype = int32: must be"));
  }

  TEST_CASE("a file that cannot be read is an IoError and a folder a ConfigError") {
    const testing::TemporaryFolder folder("npy");
    CHECK_THROWS_AS(read_npy(folder.file("absent.npy")), IoError);
    CHECK(contains(rejection([&] { read_npy(folder.file("")); }), "is a folder"));
    testing::write_file(folder.file("x.npy"),
                        written(tensor_with({1, 1, 1, 2}, {4, 5}), NpyType::f2));
    CHECK(read_npy(folder.file("x.npy")).floats == std::vector<double>{4, 5});
  }
}

}  // namespace
}  // namespace flashbound
