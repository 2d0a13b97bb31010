// What an action is refused with.
#pragma once

#include "core/errors.hpp"

#include <functional>
#include <string>

namespace flashbound::testing {

inline std::string rejection(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace flashbound::testing
