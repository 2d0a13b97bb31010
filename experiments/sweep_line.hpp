// Lines of a sweep's result file.
#pragma once

#include "core/int128.hpp"

#include <istream>
#include <optional>
#include <string>

namespace flashbound {

// The next line that ends in a line feed; false where the rest is none: `line` is then what is
// left, a torn line or nothing.
bool next_line(std::istream& in, std::string& line);

// The number of the point that a row is of, by its member "point"; none where the line is no row.
std::optional<Index> point_of_line(const std::string& line);

}  // namespace flashbound
