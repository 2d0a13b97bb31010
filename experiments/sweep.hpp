// Cartesian products over options: one call, many points.
#pragma once

#include "experiments/options.hpp"

#include <string>
#include <vector>

namespace flashbound {

// What ranges such as 128:8192:x2 or 0:100:+10 may run over as parts of a list.
enum class RangeOf { nothing, whole_numbers, sizes };
RangeOf ranges_of(const OptionText& option);

// The values that such a text lists, as texts, at most 65536. Throws ConfigError naming `field`.
std::vector<std::string> sweep_values(const std::string& field, const std::string& text,
                                      RangeOf range_of);

// A call of one value an option for every combination of those options that the verb sweeps: lists
// "64,128", and where they take whole numbers or sizes also "128:8192:x2" (from 128 to at most
// 8192, doubling) and "0:100:+10" as parts of a list. The first in the option table varies slowest.
// Options that were not given keep their defaults. Throws ConfigError for more points than 65536.
std::vector<Options> sweep_points(const Options& options);

}  // namespace flashbound
