// Files as a writer other than ours would make them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace flashbound::testing {

// Magic, version and length before `text`, which is padded as given, not aligned.
inline std::string npy_bytes(const std::string& text, const std::string& elements, int major = 1,
                             int minor = 0) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += static_cast<char>(minor);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  for (std::size_t byte = 0; byte < length_bytes; ++byte) {
    bytes += static_cast<char>(text.size() >> (8 * byte) & 0xFF);
  }
  return bytes + text + elements;
}

inline std::string npy_dictionary(const std::string& descr, const std::string& shape,
                                  bool fortran_order = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

template <class T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace flashbound::testing
