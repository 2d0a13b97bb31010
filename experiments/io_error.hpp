// The environment failed: a file cannot be opened, read or written. Exit code 3.
#pragma once

#include <stdexcept>

namespace flashbound {

struct IoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace flashbound
