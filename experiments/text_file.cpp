#include "experiments/text_file.hpp"

#include "core/errors.hpp"
#include "experiments/io_error.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace flashbound {

std::string read_text_file(const std::string& field, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) reject(field, path, "a file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError("cannot read " + path + ": " + std::strerror(errno));
  // A pipe is welcome, but a device may never end.
  constexpr std::size_t kBytesMax = 1 << 20;
  std::string text(kBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kBytesMax) reject(field, path, "a file of at most 1 MiB");
  return text;
}

}  // namespace flashbound
