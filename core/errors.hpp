// The one error for input that a user can mend: which field, what value, what is allowed.
#pragma once

#include <stdexcept>
#include <string>

namespace flashbound {

struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws ConfigError "field = value: must be allowed".
[[noreturn]] inline void reject(const std::string& field, const std::string& value,
                                const std::string& allowed) {
  throw ConfigError(field + " = " + value + ": must be " + allowed);
}

}  // namespace flashbound
