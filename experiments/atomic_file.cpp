#include "experiments/atomic_file.hpp"

#include "core/errors.hpp"
#include "experiments/io_error.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace flashbound {
namespace {

namespace fs = std::filesystem;

std::string last_error() { return errno != 0 ? std::strerror(errno) : "write failed"; }

}  // namespace

AtomicFile::AtomicFile(std::string path, Overwrite overwrite)
    : path_(std::move(path)), overwrite_(overwrite) {
  std::error_code ignored;
  if (path_ == "-") reject("output", path_, "the name of a file");
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

// Without --force a file that has appeared since the start is kept, too.
void AtomicFile::rename_into_place() {
  const unsigned flags = overwrite_ == Overwrite::no ? RENAME_NOREPLACE : 0U;
  int status = renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), flags);
  if (status != 0 && errno == EINVAL) {  // a file system without that flag
    status = std::rename(temporary_.c_str(), target_.c_str());
  }
  if (status == 0) return;
  const int reason = errno;
  std::error_code ignored;
  if (reason == EEXIST && !fs::is_directory(target_, ignored)) {
    reject("output", path_, "a new file (it appeared; --force replaces it)");
  }
  errno = reason;
  throw IoError("cannot write " + path_ + ": " + last_error());
}

void AtomicFile::commit() {
  finish();
  if (!in_place_) rename_into_place();
  committed_ = true;
}

}  // namespace flashbound
