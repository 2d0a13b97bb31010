// Who can compute attention here.
#pragma once

#include "core/reference.hpp"

#include <span>
#include <string_view>

namespace flashbound {

struct Kernel {
  std::string_view name;  // as --kernel takes it
  std::string_view title;
  Attention (*attend)(const Problem&, const Inputs&, const ParallelFor&);
};

std::span<const Kernel> kernels();
// Throws ConfigError listing the names.
const Kernel& kernel_named(std::string_view name);

}  // namespace flashbound
