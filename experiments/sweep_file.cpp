#include "experiments/sweep_file.hpp"

#include "core/errors.hpp"
#include "experiments/io_error.hpp"
#include "experiments/sweep_line.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace flashbound {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw IoError(what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

SweepFile::SweepFile(std::string path, const SweepPlan& plan, bool start_over)
    : path_(std::move(path)) {
  std::error_code ignored;
  // A pipe would block, a device cannot be read again.
  if (std::filesystem::exists(path_, ignored) &&
      !std::filesystem::is_regular_file(path_, ignored)) {
    refuse("a regular file");
  }
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);  // NOLINT(*-vararg)
  if (descriptor_ < 0) fail("cannot write", path_);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor_);
    throw IoError("cannot write " + path_ + ": another process is writing it");
  }
  try {
    if (start_over && ftruncate(descriptor_, 0) != 0) fail("cannot empty", path_);
    resume(header_of(plan), plan);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SweepFile::~SweepFile() { ::close(descriptor_); }

void SweepFile::refuse(const std::string& allowed) const {
  throw ConfigError("output = " + path_ + ": must be " + allowed);
}

void SweepFile::resume(const SweepHeader& header, const SweepPlan& plan) {
  std::ifstream in(path_, std::ios::binary);
  if (!in) fail("cannot read", path_);
  std::string line;
  if (!next_line(in, line)) {
    // New, or killed before its first line was whole: `line` is all there is.
    if (!(header_line(header) + "\n").starts_with(line)) {
      refuse("a new file or one that a sweep began");
    }
    if (ftruncate(descriptor_, 0) != 0) fail("cannot empty", path_);
    append(header_line(header) + "\n");
    return;
  }
  const std::optional<SweepHeader> found = parse_header(line);
  if (!found) refuse("a new file or one that a sweep began");
  const std::string differs = difference(header, *found);
  if (!differs.empty()) refuse("of the same sweep, but " + differs);
  auto whole = static_cast<off_t>(line.size() + 1);  // up to the last point, which may lack rows
  off_t at = whole;
  Index last = -1;
  while (next_line(in, line)) {
    if (line == trailer_line(plan.own_points())) {
      if (next_line(in, line) || !line.empty()) refuse("without anything after its last line");
      complete_ = true;
      done_ = plan.own_points();
      return;
    }
    const std::optional<Index> point = point_of_line(line);
    if (!point) refuse("of rows, not " + line.substr(0, 40));
    if (*point != last) {
      if (last >= 0) ++done_;
      if (*point != plan.own_point(done_)) {
        refuse("of points in order, but has " + std::to_string(*point) + " for " +
               std::to_string(plan.own_point(done_)));
      }
      last = *point;
      whole = at;
    }
    at += static_cast<off_t>(line.size() + 1);
  }
  if (ftruncate(descriptor_, whole) != 0) fail("cannot shorten", path_);
}

void SweepFile::append(const std::string& lines) {
  if (lseek(descriptor_, 0, SEEK_END) < 0) fail("cannot write", path_);
  std::size_t at = 0;
  while (at < lines.size()) {
    const ssize_t written = ::write(descriptor_, lines.data() + at, lines.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write", path_);
    at += static_cast<std::size_t>(written);
  }
}

}  // namespace flashbound
