// What is no array that this library reads is refused with its name and a reason.
#include "experiments/npy.hpp"
#include "tests/experiments/npy_bytes.hpp"
#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

namespace flashbound {
namespace {

using testing::contains;
using testing::npy_bytes;
using testing::npy_dictionary;
using testing::raw;
using testing::rejection;

std::string rejection_of(const std::string& bytes) {
  return rejection([&] { parse_npy(bytes, "x.npy"); });
}

struct Case {
  std::string text;
  std::string reason;
};

TEST_SUITE("experiments.npy") {
  TEST_CASE("a malformed dictionary is refused") {
    const std::vector<Case> cases{
        {"", "lacks a '{'"},
        {"{", "malformed"},
        {"{}", "must give descr"},
        {"descr", "lacks a '{'"},
        {"{'descr': '<f4'}", "must give descr"},
        {"{'descr': '<f4', 'fortran_order': False}", "must give descr"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "unknown key"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "after its dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "lacks a '}'"},
        {"{'descr': '<f4', 'fortran_order': False 'shape': (1,)}", "lacks a '}'"},
        {"{'descr' '<f4'}", "lacks a ':'"},
        {"{'descr: 1", "open quotation"},
        {"{descr: '<f4'}", "malformed"},
        {"{'descr': <f4, 'fortran_order': False, 'shape': (1,)}", "malformed"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': false, 'shape': (1,)}", "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (1,)}", "lacks a '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [1]}", "lacks a '('"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1}", "lacks a ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1 1)}", "lacks a ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}", "no list of lengths"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "no list of lengths"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "no list of lengths"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1.0,)}", "lacks a ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1L)}", "lacks a ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "no list of lengths"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "beyond 64 bits"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.text);
      const std::string message = rejection_of(npy_bytes(c.text, raw<float>({1})));
      CAPTURE(message);
      CHECK(contains(message, "x.npy: "));
      CHECK(contains(message, c.reason));
    }
  }

  TEST_CASE("types that are not read are refused by name") {
    const std::vector<Case> cases{{">f4", "dtype = >f4"},           {"<c8", "dtype = <c8"},
                                  {"|O", "never loaded"},           {"<U4", "dtype = <U4"},
                                  {"|i1", "dtype = |i1"},           {"<u4", "dtype = <u4"},
                                  {"<M8[ns]", "dtype = <M8"},       {"", "dtype = :"},
                                  {"<f16", "dtype = <f16"},         {"=f4", "dtype = =f4"},
                                  {"a\x01\xFF\nb", "dtype = a???b"}};
    for (const Case& c : cases) {
      CAPTURE(c.text);
      CHECK(contains(rejection_of(npy_bytes(npy_dictionary(c.text, "(1,)"), raw<float>({1}))),
                     c.reason));
    }
    const std::string structured =
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n";
    CHECK(contains(rejection_of(npy_bytes(structured, raw<float>({1}))), "structured"));
  }

  TEST_CASE("every prefix of a file is refused and so is a byte too many") {
    for (int major = 1; major <= 3; ++major) {
      CAPTURE(major);
      const std::string whole =
          npy_bytes(npy_dictionary("<f4", "(2, 1)"), raw<float>({1, 2}), major);
      REQUIRE(rejection_of(whole) == "accepted");
      for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK(rejection_of(whole.substr(0, size)) != "accepted");
      }
      CHECK(rejection_of(whole + '\0') == "x.npy: 9 bytes of elements: must be 8 for its shape");
    }
  }

  TEST_CASE("unknown versions and absurd header lengths are refused") {
    const std::string text = npy_dictionary("<f4", "(1,)");
    for (const auto& [major, minor] : {std::pair{0, 0}, {4, 0}, {1, 1}, {255, 255}}) {
      CAPTURE(major);
      CHECK(contains(rejection_of(npy_bytes(text, raw<float>({1}), major, minor)),
                     "must be 1.0, 2.0 or 3.0"));
    }
    std::string bytes = npy_bytes(text, raw<float>({1}), 2);
    for (std::size_t byte = 8; byte < 12; ++byte) bytes[byte] = '\xFF';
    CHECK(contains(rejection_of(bytes), "header of 4294967295 bytes"));
    CHECK(contains(rejection_of("PK\x03\x04 an archive"), "does not begin like a .npy file"));
  }

  TEST_CASE("a shape beyond memory is refused before any allocation unless it is empty") {
    for (const char* shape : {"(4294967296, 4294967296)", "(9223372036854775799, 2)",
                              "(2305843009213693952,)", "(3037000500, 3037000500)"}) {
      CAPTURE(std::string(shape));
      const std::string message = rejection_of(npy_bytes(npy_dictionary("<f8", shape), ""));
      CHECK(contains(message, "beyond 64 bits"));
    }
    // Fits 64 bits, but not this file.
    CHECK(contains(rejection_of(npy_bytes(npy_dictionary("<f8", "(1000000000000,)"), "")),
                   "truncated"));
    const NpyArray empty = parse_npy(
        npy_bytes(npy_dictionary("<f8", "(4294967296, 4294967296, 4294967296, 0)"), ""), "x.npy");
    CHECK(empty.floats.empty());
    CHECK(empty.shape.size() == 4);
  }

  TEST_CASE("more axes than NumPy has are refused") {
    const auto ones = [](int axes) {
      std::string shape = "(";
      for (int axis = 0; axis < axes; ++axis) shape += "1,";
      return npy_bytes(npy_dictionary("<f4", shape + ")"), raw<float>({1}));
    };
    CHECK(rejection_of(ones(32)) == "accepted");
    CHECK(contains(rejection_of(ones(33)), "too many axes"));
  }
}

}  // namespace
}  // namespace flashbound
