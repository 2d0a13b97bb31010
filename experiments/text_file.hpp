// Small files that people write: configurations, recipes.
#pragma once

#include <string>

namespace flashbound {

// The file's bytes. Throws ConfigError naming `field` for a folder or for more than 1 MiB, IoError
// for what cannot be read.
std::string read_text_file(const std::string& field, const std::string& path);

}  // namespace flashbound
