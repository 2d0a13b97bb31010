#include "experiments/source_tree.hpp"

#include "experiments/io_error.hpp"

#include <filesystem>
#include <system_error>

namespace flashbound {

std::string default_activations() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed =
      command.parent_path().parent_path() / "share" / "flashbound" / "activations";
  const fs::path source = fs::path(FLASHBOUND_SOURCE_DIR) / "experiments" / "activations";
  for (const fs::path& folder : {installed, source}) {
    if (fs::is_directory(folder, error)) return folder.string();
  }
  throw IoError("cannot read " + source.string() + ": no recorded activations (--activations)");
}

}  // namespace flashbound
