#include "core/json_text.hpp"

#include "core/errors.hpp"

#include <set>
#include <vector>

namespace flashbound {

using Json = nlohmann::ordered_json;

Json parse_json_strictly(const std::string& field, std::string_view text) {
  constexpr int kDepthMax = 64;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDepthMax) {
      reject(field, "JSON nested more than " + std::to_string(kDepthMax) + " deep", "flatter");
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto key = parsed.get<std::string>();
      if (!keys.back().insert(key).second) reject(field + " " + key, "given twice", "given once");
    }
    return true;
  };
  Json json = Json::parse(text, check, false);
  if (json.is_discarded()) reject(field, "this text", "JSON");
  return json;
}

std::string brief(const Json& json) {
  constexpr std::size_t kLongest = 60;
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

}  // namespace flashbound
