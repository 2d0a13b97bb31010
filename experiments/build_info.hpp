// What was built, from which sources and how: the build's part of a manifest.
#pragma once

#include <string_view>

namespace flashbound {

struct BuildInfo {
  std::string_view version;        // of this project, "0.1.0"
  std::string_view git_hash;       // 40 hex digits; "unknown" outside a git checkout
  bool git_dirty;                  // tracked files differed from that commit
  std::string_view compiler;       // "GNU 12.2.0"
  std::string_view flags;          // all that can change results, "-O3 -DNDEBUG -ffp-contract=off"
  std::string_view build_type;     // "Release" or "Debug"
  std::string_view cuda_compiler;  // "NVIDIA 13.0.88"; empty where CUDA was not built
};

const BuildInfo& build_info();

}  // namespace flashbound
