#include "experiments/output_paths.hpp"

#include "core/errors.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

namespace flashbound {
namespace {

// However it is spelt.
std::string file_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path canonical = fs::weakly_canonical(absolute, error);
  return (canonical.empty() ? absolute.lexically_normal() : canonical).string();
}

}  // namespace

void require_distinct_paths(const Options& options) {
  std::set<std::string> taken;
  for (const char* option :
       {"q", "k", "v", "grad-o", "block-mask", "cu-seqlens-q", "cu-seqlens-kv", "config"}) {
    if (options.given(option)) taken.insert(file_of(options.text(option)));
  }
  // A list may mix files with names.
  for (const std::string& recipe : split_commas(options.find("recipe").value_or(""))) {
    if (recipe.ends_with(".json")) taken.insert(file_of(recipe));
  }
  for (const std::string& input : split_commas(options.find("input").value_or(""))) {
    taken.insert(file_of(input));
  }
  const auto take = [&](const char* option, const std::string& path) {
    std::error_code ignored;
    const bool in_place =
        std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
    if (in_place) return;  // a device or a pipe takes several
    if (!taken.insert(file_of(path)).second) reject(option, path, "a file of its own");
  };
  for (const char* option : {"o", "lse-out", "grad-q", "grad-k", "grad-v", "record-out",
                             "program-out", "plot", "report", "output"}) {
    if (!options.given(option)) continue;
    const std::string path = options.text(option);
    if (std::string(option) == "output" && path == "-") continue;
    take(option, path);
  }
  if (options.given("output") && options.text("output") != "-") {
    take("output", options.text("output") + ".manifest.json");
  }
}

}  // namespace flashbound
