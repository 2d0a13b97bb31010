// The spelling of every enumeration of the program language, in JSON, errors and event logs.
#pragma once

#include "core/program.hpp"

#include <string_view>

namespace flashbound {

std::string_view name(Axis value);
std::string_view name(RangeKind value);
std::string_view name(TileRole value);
std::string_view name(TensorRole value);
std::string_view name(Content value);
std::string_view name(Width value);
std::string_view name(Op value);

// Sets `value` to the enumerator called `text`; false, and `value` untouched, when there is none.
bool parse(std::string_view text, Axis& value);
bool parse(std::string_view text, RangeKind& value);
bool parse(std::string_view text, TileRole& value);
bool parse(std::string_view text, TensorRole& value);
bool parse(std::string_view text, Content& value);
bool parse(std::string_view text, Width& value);
bool parse(std::string_view text, Op& value);

}  // namespace flashbound
