#include "experiments/atomic_file.hpp"

#include "core/errors.hpp"
#include "experiments/io_error.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace flashbound {
namespace {

namespace fs = std::filesystem;

std::string last_error() { return errno != 0 ? std::strerror(errno) : "write failed"; }

}  // namespace

AtomicFile::AtomicFile(std::string path, Overwrite overwrite) : path_(std::move(path)) {
  std::error_code ignored;
  if (fs::is_directory(path_, ignored)) reject("output", path_, "a file, not a folder");
  // A device or a pipe has no content to keep, and a rename would put a file in its place.
  in_place_ = fs::exists(path_, ignored) && !fs::is_regular_file(path_, ignored);
  if (!in_place_ && overwrite == Overwrite::no && fs::exists(fs::symlink_status(path_, ignored))) {
    reject("output", path_, "a new file (it exists; --force replaces it)");
  }
  // A link stays one: what it points to is replaced.
  std::string target = path_;
  if (!in_place_ && fs::exists(path_, ignored)) target = fs::canonical(path_, ignored).string();
  target_ = target.empty() ? path_ : target;
  temporary_ = in_place_ ? path_ : target_ + ".part-" + std::to_string(getpid());
  errno = 0;
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) throw IoError("cannot write " + path_ + ": " + last_error());
}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  stream_.close();
  if (in_place_) return;
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void AtomicFile::finish() {
  if (finished_) return;
  if (stream_) errno = 0;  // else it says why a write failed
  stream_.close();         // flushes
  if (!stream_) throw IoError("cannot write " + path_ + ": " + last_error());
  finished_ = true;
}

void AtomicFile::commit() {
  finish();
  std::error_code error;
  if (!in_place_) fs::rename(temporary_, target_, error);
  if (error) throw IoError("cannot write " + path_ + ": " + error.message());
  committed_ = true;
}

}  // namespace flashbound
