// The result file of a sweep: JSON lines, only ever appended to. The first line is the header, then
// come the rows in the order of their points, then a last line that says the file is complete. A
// process that was killed leaves a prefix, perhaps with a torn last line; the next one goes on from
// the last whole point.
#pragma once

#include "experiments/sweep_header.hpp"

#include <string>

namespace flashbound {

class SweepFile {
 public:
  // Opens or creates, and locks. Throws ConfigError where the file is another sweep's (naming the
  // first difference), is not one, or is no regular file; IoError where it cannot be written or is
  // being written. Nothing that is not this sweep's is ever shortened, unless to start over.
  SweepFile(std::string path, const SweepPlan& plan, bool start_over);
  ~SweepFile();
  SweepFile(const SweepFile&) = delete;
  SweepFile& operator=(const SweepFile&) = delete;
  SweepFile(SweepFile&&) = delete;
  SweepFile& operator=(SweepFile&&) = delete;

  // Points of the shard whose rows are there.
  Index done() const { return done_; }
  bool complete() const { return complete_; }
  // Rows of whole points, in order: handed to the system in one write. Throws IoError.
  void append(const std::string& lines);

 private:
  void resume(const SweepHeader& header, const SweepPlan& plan);
  [[noreturn]] void refuse(const std::string& allowed) const;

  std::string path_;
  int descriptor_ = -1;
  Index done_ = 0;
  bool complete_ = false;
};

}  // namespace flashbound
