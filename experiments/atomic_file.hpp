// Output files that are whole or not there: written under a temporary name, renamed at the end.
#pragma once

#include <fstream>
#include <string>

namespace flashbound {

enum class Overwrite { no, yes };

// Opens PATH.part-PID in the folder of `path` at once, so that an unwritable place is found before
// the work. Without commit() the temporary file is removed and `path` stays as it was.
class AtomicFile {
 public:
  // Throws ConfigError when `path` exists (or is a folder) and may not be replaced, IoError when
  // nothing can be written there.
  AtomicFile(std::string path, Overwrite overwrite);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  AtomicFile(AtomicFile&&) = delete;
  AtomicFile& operator=(AtomicFile&&) = delete;

  std::ostream& stream() { return stream_; }
  // Flushes and renames. Throws IoError (a full disk, say) and leaves nothing behind.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  std::ofstream stream_;
  bool committed_ = false;
};

}  // namespace flashbound
