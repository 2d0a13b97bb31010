#include "experiments/atomic_file.hpp"

#include "core/errors.hpp"
#include "experiments/io_error.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace flashbound {
namespace {

namespace fs = std::filesystem;

std::string last_error() { return errno != 0 ? std::strerror(errno) : "write failed"; }

}  // namespace

AtomicFile::AtomicFile(std::string path, Overwrite overwrite)
    : path_(std::move(path)), temporary_(path_ + ".part-" + std::to_string(getpid())) {
  std::error_code ignored;
  if (fs::is_directory(path_, ignored)) reject("output", path_, "a file, not a folder");
  if (overwrite == Overwrite::no && fs::exists(path_, ignored)) {
    reject("output", path_, "a new file (it exists; --force replaces it)");
  }
  errno = 0;
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) throw IoError("cannot write " + path_ + ": " + last_error());
}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  stream_.close();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  errno = 0;
  stream_.close();  // flushes
  if (!stream_) throw IoError("cannot write " + path_ + ": " + last_error());
  std::error_code error;
  fs::rename(temporary_, path_, error);
  if (error) throw IoError("cannot write " + path_ + ": " + error.message());
  committed_ = true;
}

}  // namespace flashbound
