// JSON from outside, read strictly.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace flashbound {

// Throws ConfigError naming `field` for what is no JSON, is nested more than 64 deep, or gives a
// key of an object twice.
nlohmann::ordered_json parse_json_strictly(const std::string& field, std::string_view text);

// A value as an error message may show it: at most 60 characters.
std::string brief(const nlohmann::ordered_json& json);

}  // namespace flashbound
