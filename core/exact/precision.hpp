// The ladder of precisions that elements in doubt climb.
#pragma once

#include "core/exact.hpp"

namespace flashbound {

// Throws ConfigError naming the option that is out of range.
void validate(const ExactOptions& options);

// Twice the precision, at most the cap; 0 after the cap.
inline int next_precision(int precision, const ExactOptions& options) {
  if (precision >= options.precision_cap) return 0;
  return precision > options.precision_cap / 2 ? options.precision_cap : 2 * precision;
}

}  // namespace flashbound
