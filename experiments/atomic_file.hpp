// Output files that are whole or not there: written under a temporary name, renamed at the end.
#pragma once

#include <fstream>
#include <string>

namespace flashbound {

enum class Overwrite { no, yes };

// Opens PATH.part-PID in the folder of `path` at once, so that an unwritable place is found before
// the work. Without commit() the temporary file is removed and `path` stays as it was. A device or
// a pipe is written to in place.
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
  // Whether it is a device or a pipe.
  bool in_place() const { return in_place_; }
  // Flushes. Throws IoError (a full disk, say) and leaves nothing behind. Of several files, finish
  // all before the first commit: either all of them appear or none.
  void finish();
  // Finishes and renames.
  void commit();

 private:
  void rename_into_place();

  std::string path_;  // as it was given
  Overwrite overwrite_;
  std::string target_;  // what it links to
  std::string temporary_;
  std::ofstream stream_;
  bool in_place_ = false;  // no regular file: written to as it goes
  bool finished_ = false;
  bool committed_ = false;
};

}  // namespace flashbound
