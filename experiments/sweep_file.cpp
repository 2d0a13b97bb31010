#include "experiments/sweep_file.hpp"

#include "core/errors.hpp"
#include "experiments/build_info.hpp"
#include "experiments/io_error.hpp"
#include "experiments/results.hpp"
#include "experiments/sweep_line.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <unistd.h>

namespace flashbound {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw IoError(what + " " + path + ": " + std::strerror(errno));
}

// The first member in which two headers differ, with both values.
std::string difference(const nlohmann::json& ours, const nlohmann::json& theirs,
                       const std::string& path = "") {
  for (const auto& [key, value] : ours.items()) {
    if (!theirs.contains(key)) return path + key + " = " + value.dump() + ", absent in the file";
    if (theirs[key] == value) continue;
    if (value.is_object() && theirs[key].is_object()) {
      return difference(value, theirs[key], key + ".");
    }
    return path + key + " = " + value.dump() + ", " + theirs[key].dump() + " in the file";
  }
  for (const auto& [key, value] : theirs.items()) {
    if (!ours.contains(key)) return path + key + " = absent, " + value.dump() + " in the file";
  }
  return "";
}

}  // namespace

std::string sweep_header(const SweepPlan& plan) {
  return fmt::format(
      "{{\"schema_version\": 1, \"kind\": \"flashbound-sweep\", \"version\": {}, \"config\": {}, "
      "\"points\": {}, \"shard\": {{\"index\": {}, \"count\": {}}}}}",
      json_string(build_info().version), sweep_config_json(plan), plan.points, plan.shard.index + 1,
      plan.shard.count);
}

std::string sweep_trailer(Index points) {
  return fmt::format("{{\"complete\": true, \"points\": {}}}", points);
}

SweepFile::SweepFile(std::string path, const SweepPlan& plan, bool start_over)
    : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);  // NOLINT(*-vararg)
  if (descriptor_ < 0) fail("cannot write", path_);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor_);
    throw IoError("cannot write " + path_ + ": another process is writing it");
  }
  try {
    const std::string header = sweep_header(plan);
    if (start_over && ftruncate(descriptor_, 0) != 0) fail("cannot empty", path_);
    resume(header, plan);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

SweepFile::~SweepFile() { close(descriptor_); }

void SweepFile::resume(const std::string& header, const SweepPlan& plan) {
  std::ifstream in(path_, std::ios::binary);
  if (!in) fail("cannot read", path_);
  std::string line;
  if (!next_line(in, line)) {  // new, or killed before its first line was whole
    if (ftruncate(descriptor_, 0) != 0) fail("cannot empty", path_);
    append(header + "\n");
    return;
  }
  if (line != header) {
    const auto theirs = nlohmann::json::parse(line, nullptr, false);
    if (!theirs.is_object() || theirs.value("kind", "") != "flashbound-sweep") {
      throw ConfigError("output = " + path_ + ": must be a new file or one that a sweep began");
    }
    throw ConfigError("output = " + path_ + ": must be of the same sweep, but " +
                      difference(nlohmann::json::parse(header), theirs));
  }
  auto whole = static_cast<off_t>(line.size() + 1);  // up to the last point, which may lack rows
  off_t at = whole;
  Index last = -1;
  while (next_line(in, line)) {
    if (line == sweep_trailer(plan.own_points())) {
      complete_ = true;
      done_ = plan.own_points();
      return;
    }
    const std::optional<Index> point = point_of_line(line);
    if (!point)
      throw ConfigError("output = " + path_ + ": must hold rows, not " + line.substr(0, 40));
    if (*point != last) {
      if (last >= 0) ++done_;
      if (*point != plan.own_point(done_)) {
        throw ConfigError("output = " + path_ + ": must hold points in order, but has " +
                          std::to_string(*point) + " for " + std::to_string(plan.own_point(done_)));
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
