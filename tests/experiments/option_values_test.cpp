// Values of options become numbers exactly or are refused, on both sides of every limit.
#include "core/errors.hpp"
#include "experiments/options.hpp"
#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace flashbound {
namespace {

using testing::rejection;

constexpr Index kMost = std::numeric_limits<Index>::max();

std::string integer_rejection(const std::string& text) {
  return rejection([&] { parse_integer("x", text); });
}
std::string number_rejection(const std::string& text) {
  return rejection([&] { parse_number("x", text); });
}
std::string size_rejection(const std::string& text) {
  return rejection([&] { parse_bytes("x", text); });
}

TEST_SUITE("experiments.options") {
  TEST_CASE("integers span 64 bits and end there") {
    CHECK(parse_integer("x", "0") == 0);
    CHECK(parse_integer("x", "-1") == -1);
    CHECK(parse_integer("x", "007") == 7);
    CHECK(parse_integer("x", "9223372036854775807") == kMost);
    CHECK(parse_integer("x", "-9223372036854775808") == -kMost - 1);
    for (const char* text : {"9223372036854775808", "-9223372036854775809", "", " 1", "1 ", "+1",
                             "1.0", "1e3", "0x10", "--1", "1,000", "one", "1\n", "-"}) {
      CAPTURE(std::string(text));
      CHECK(integer_rejection(text) ==
            "x = " + std::string(text) + ": must be a whole number of 64 bits");
    }
    CHECK(integer_rejection(std::string("1\0", 2)) != "accepted");
  }

  TEST_CASE("numbers are finite decimals read to the nearest double") {
    CHECK(parse_number("x", "0.1") == 0.1);
    CHECK(parse_number("x", "-2.5e-3") == -0.0025);
    CHECK(parse_number("x", "1.7976931348623157e308") == std::numeric_limits<double>::max());
    CHECK(parse_number("x", "5e-324") == std::numeric_limits<double>::denorm_min());
    CHECK(std::signbit(parse_number("x", "-0")));
    for (const char* text : {"inf", "-inf", "nan", "infinity", "1e309", "-1e309", "", " 1", "1 ",
                             "+1", "1e", "0x1p3", "1.2.3", ".", "e5", "1f", "1,5"}) {
      CAPTURE(std::string(text));
      CHECK(number_rejection(text) == "x = " + std::string(text) + ": must be a finite number");
    }
  }

  TEST_CASE("sizes know binary and decimal units") {
    CHECK(parse_bytes("x", "4096") == Bytes(4096));
    CHECK(parse_bytes("x", "4096B") == Bytes(4096));
    CHECK(parse_bytes("x", "1KiB") == Bytes(1024));
    CHECK(parse_bytes("x", "3MiB") == Bytes(3 * 1024 * 1024));
    CHECK(parse_bytes("x", "2GiB") == Bytes(Int128{2} << 30));
    CHECK(parse_bytes("x", "1kB") == Bytes(1000));
    CHECK(parse_bytes("x", "1KB") == Bytes(1000));
    CHECK(parse_bytes("x", "20MB") == Bytes(20000000));
    CHECK(parse_bytes("x", "1GB") == Bytes(1000000000));
    CHECK(parse_bytes("x", "0") == Bytes(0));
  }

  TEST_CASE("sizes end below 2^63 bytes in every unit") {
    CHECK(parse_bytes("x", "9223372036854775807") == Bytes(kMost));
    CHECK(parse_bytes("x", "8589934591GiB") == Bytes(Int128{8589934591} << 30));
    CHECK(parse_bytes("x", "9007199254740991KiB") == Bytes(Int128{9007199254740991} << 10));
    CHECK(parse_bytes("x", "9223372036854775kB") == Bytes(Int128{9223372036854775} * 1000));
    for (const char* text : {"9223372036854775808", "8589934592GiB", "9007199254740992KiB",
                             "9223372036854776kB", "99999999999999999999B"}) {
      CAPTURE(std::string(text));
      CHECK(size_rejection(text) == "x = " + std::string(text) + ": must be below 2^63 bytes");
    }
  }

  TEST_CASE("other texts are no sizes") {
    for (const char* text : {"", "KiB", "-1", "+1", "1.5MiB", "1 KiB", "1kib", "1K", "1TiB", "1Bx",
                             "0x10", "1e3", " 1", "1 "}) {
      CAPTURE(std::string(text));
      CHECK(size_rejection(text) ==
            "x = " + std::string(text) + ": must be a size such as 4096, 192KiB, 20MB or 1GiB");
    }
  }

  TEST_CASE("commas split into parts of which none is lost") {
    using Parts = std::vector<std::string>;
    CHECK(split_commas("") == Parts{""});
    CHECK(split_commas("a") == Parts{"a"});
    CHECK(split_commas("a,b") == Parts{"a", "b"});
    CHECK(split_commas(",a,,b,") == Parts{"", "a", "", "b", ""});
  }

  TEST_CASE("the nearest name is one within two edits or a third of the word") {
    const std::vector<std::string> names{"seqlen", "seqlen-q", "head-dim", "mask"};
    CHECK(nearest("seqln", names) == "seqlen");
    CHECK(nearest("seqlne", names) == "seqlen");  // two edits
    CHECK(nearest("seqlen-p", names) == "seqlen-q");
    CHECK(nearest("heddim", names) == "head-dim");
    CHECK(nearest("mask", names) == "mask");
    CHECK(nearest("mxyk", names) == "mask");
    CHECK(nearest("xyzk", names) == std::nullopt);  // three edits of four letters
    CHECK(nearest("kernel-of-mine", names) == std::nullopt);
    CHECK(nearest("", names) == std::nullopt);
    CHECK(nearest(std::string(65, 'm'), {std::string(65, 'm')}) == std::nullopt);
    CHECK(nearest(std::string(64, 'm'), {std::string(64, 'm')}) == std::string(64, 'm'));
    CHECK(nearest("mask", {}) == std::nullopt);
  }
}

}  // namespace
}  // namespace flashbound
