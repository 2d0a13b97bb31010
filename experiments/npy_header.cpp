#include "experiments/npy_header.hpp"

#include "core/errors.hpp"

#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

namespace flashbound {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kRankMax = 32;  // as NumPy's

struct TypeName {
  NpyType type;
  std::string_view descr;  // in the header
  const char* name;
  std::size_t bytes;
};
constexpr std::array<TypeName, 7> kTypes{{
    {NpyType::f2, "<f2", "float16", 2},
    {NpyType::f4, "<f4", "float32", 4},
    {NpyType::f8, "<f8", "float64", 8},
    {NpyType::u1, "|u1", "uint8", 1},
    {NpyType::b1, "|b1", "bool", 1},
    {NpyType::i4, "<i4", "int32", 4},
    {NpyType::i8, "<i8", "int64", 8},
}};

// Reads the dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), } and no other.
class DictionaryParser {
 public:
  DictionaryParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    expect('{');
    std::set<std::string> seen;
    while (!accept('}')) {
      const std::string key(quoted());
      if (!seen.insert(key).second) fail("gives '" + key + "' twice");
      expect(':');
      read_value(key);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("has text after its dictionary");
    if (seen.size() != 3) fail("must give descr, fortran_order and shape");
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(name_ + ": header " + what + ": must be a .npy header");
  }

  void read_value(const std::string& key) {
    if (key == "descr") return read_type();
    if (key == "fortran_order") return read_order();
    if (key == "shape") return read_shape();
    fail("has an unknown key");
  }

  void read_type() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      throw ConfigError(name_ + ": dtype is structured: must be a plain float or integer type");
    }
    const std::string_view descr = quoted();
    for (const TypeName& type : kTypes) {
      if (type.descr == descr) {
        header_.type = type.type;
        return;
      }
    }
    std::string text(descr.substr(0, 16));
    for (char& c : text) {
      if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
    }
    const bool pickled = text.find('O') != std::string::npos;
    throw ConfigError(name_ + ": dtype = " + text +
                      (pickled ? " (pickled objects, never loaded)" : "") +
                      ": must be little-endian float16, float32, float64, int32, int64, uint8 or "
                      "bool");
  }

  void read_order() {
    if (accept_word("True")) {
      header_.fortran_order = true;
    } else if (!accept_word("False")) {
      fail("has a fortran_order that is neither True nor False");
    }
  }

  void read_shape() {
    expect('(');
    while (!accept(')')) {
      header_.shape.push_back(integer());
      if (header_.shape.size() > kRankMax) fail("has too many axes");
      if (!accept(',')) {
        // (1) is a number in Python, and only (1,) a tuple.
        if (header_.shape.size() == 1) fail("has a shape that is no list of lengths");
        expect(')');
        break;
      }
    }
  }

  Index integer() {
    skip_space();
    Index value = 0;
    const std::size_t first = at_;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_) {
      if (value > (std::numeric_limits<Index>::max() - 9) / 10) fail("has a length beyond 64 bits");
      value = value * 10 + (text_[at_] - '0');
    }
    if (at_ == first) fail("has a shape that is no list of lengths");
    return value;
  }

  std::string_view quoted() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("is malformed");
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("has an open quotation");
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(std::string("lacks a '") + wanted + "'");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

// The number of elements, if it and their bytes fit the address space.
std::optional<Index> element_count(const NpyHeader& header) {
  Index count = 1;
  for (const Index length : header.shape) {
    // A zero anywhere makes the array empty, so a product that overflows before it does not matter.
    if (length == 0) return 0;
  }
  for (const Index length : header.shape) {
    if (__builtin_mul_overflow(count, length, &count)) return std::nullopt;
  }
  Index bytes = 0;
  const auto width = static_cast<Index>(byte_width(header.type));
  if (__builtin_mul_overflow(count, width, &bytes)) return std::nullopt;
  return count;
}

// The text of the dictionary, and where the elements begin.
std::string_view header_text(const std::string& bytes, const std::string& name,
                             std::size_t& data_begin) {
  constexpr std::size_t kVersionEnd = 8;
  if (bytes.size() < kVersionEnd || std::string_view(bytes).substr(0, kMagic.size()) != kMagic) {
    throw ConfigError(name + ": does not begin like a .npy file: must be written by numpy.save");
  }
  const int major = static_cast<unsigned char>(bytes[6]);
  const int minor = static_cast<unsigned char>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw ConfigError(name + ": format version " + std::to_string(major) + "." +
                      std::to_string(minor) + ": must be 1.0, 2.0 or 3.0");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t text_begin = kVersionEnd + length_bytes;
  if (bytes.size() < text_begin) {
    throw ConfigError(name + ": ends within its header: must be a whole .npy file");
  }
  std::size_t length = 0;
  for (std::size_t byte = 0; byte < length_bytes; ++byte) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[kVersionEnd + byte]))
              << (8 * byte);
  }
  if (length > kNpyHeaderTextMax) {
    throw ConfigError(name + ": header of " + std::to_string(length) + " bytes: must be at most " +
                      std::to_string(kNpyHeaderTextMax));
  }
  if (bytes.size() - text_begin < length) {
    throw ConfigError(name + ": ends within its header: must be a whole .npy file");
  }
  data_begin = text_begin + length;
  return std::string_view(bytes).substr(text_begin, length);
}

}  // namespace

const char* name(NpyType type) { return kTypes[static_cast<std::size_t>(type)].name; }

std::size_t byte_width(NpyType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

NpyHeader parse_npy_header(const std::string& bytes, const std::string& name) {
  std::size_t data_begin = 0;
  const std::string_view text = header_text(bytes, name, data_begin);
  NpyHeader header = DictionaryParser(text, name).parse();
  header.data_begin = data_begin;
  const std::optional<Index> count = element_count(header);
  if (!count) throw ConfigError(name + ": shape is beyond 64 bits: must fit the file");
  header.elements = *count;
  return header;
}

std::string npy_header(const std::array<Index, 4>& shape, NpyType type) {
  std::string text = "{'descr': '";
  text += kTypes[static_cast<std::size_t>(type)].descr;
  text += "', 'fortran_order': False, 'shape': (";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(shape[axis]);
  }
  text += "), }";
  constexpr std::size_t kBeforeText = 10;
  constexpr std::size_t kAlignment = 64;
  while ((kBeforeText + text.size() + 1) % kAlignment != 0) text += ' ';
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Eigen::half round_to_half(double value) {
  // Round to odd in fp32 first: the sticky bit keeps the second rounding from being fooled.
  auto narrow = static_cast<float>(value);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != value) {
    auto bits = Eigen::numext::bit_cast<std::uint32_t>(narrow);
    if ((bits & 1U) == 0) {
      const bool too_far = std::abs(static_cast<double>(narrow)) > std::abs(value);
      bits = too_far ? bits - 1 : bits + 1;
    }
    narrow = Eigen::numext::bit_cast<float>(bits);
  }
  return static_cast<Eigen::half>(narrow);
}

}  // namespace flashbound
