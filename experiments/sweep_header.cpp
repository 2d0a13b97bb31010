#include "experiments/sweep_header.hpp"

#include "experiments/build_info.hpp"
#include "experiments/results.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace flashbound {
namespace {

using Json = nlohmann::ordered_json;

std::optional<Index> index_in(const Json& json, const char* key, Index low, Index high) {
  if (!json.contains(key) || !json[key].is_number_integer()) return std::nullopt;
  const auto value = json[key].get<Index>();
  if (value < low || value > high) return std::nullopt;
  return value;
}

std::string of_configs(const std::string& wanted, const std::string& found) {
  const Json ours = Json::parse(wanted);
  const Json theirs = Json::parse(found);
  for (const auto& [key, value] : ours.items()) {
    if (!theirs.contains(key)) return fmt::format("config.{} is absent there", key);
    if (theirs[key] != value) {
      return fmt::format("config.{} = {}, {} in the file", key, value.dump(), theirs[key].dump());
    }
  }
  for (const auto& [key, value] : theirs.items()) {
    if (!ours.contains(key)) return fmt::format("config.{} = {} in the file", key, value.dump());
  }
  return "config is written otherwise";
}

}  // namespace

std::string header_line(const SweepHeader& header) {
  return fmt::format(
      "{{\"schema_version\": 1, \"kind\": \"flashbound-sweep\", \"version\": {}, \"config\": {}, "
      "\"points\": {}, \"shard\": {{\"index\": {}, \"count\": {}}}}}",
      json_string(header.version), header.config, header.points, header.shard.index + 1,
      header.shard.count);
}

std::string trailer_line(Index own_points) {
  return fmt::format("{{\"complete\": true, \"points\": {}}}", own_points);
}

SweepHeader header_of(const SweepPlan& plan) {
  return {std::string(build_info().version), sweep_config_json(plan), plan.points, plan.shard};
}

std::optional<SweepHeader> parse_header(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  const bool is_header = json.is_object() && json.contains("kind") &&
                         json["kind"] == "flashbound-sweep" && json.contains("version") &&
                         json["version"].is_string() && json.contains("config") &&
                         json["config"].is_object() && json.contains("shard") &&
                         json["shard"].is_object() && json.value("schema_version", Json()) == 1;
  if (!is_header) return std::nullopt;
  const auto points = index_in(json, "points", 0, kSweepPointsMax);
  const auto count = index_in(json["shard"], "count", 1, kShardsMax);
  const auto index = index_in(json["shard"], "index", 1, count.value_or(1));
  if (!points || !count || !index) return std::nullopt;
  // The text of the configuration, spaces and all, is what shards are compared by.
  const std::size_t begin = line.find("\"config\": ") + 10;
  const std::size_t end = line.rfind(", \"points\": ");
  if (end == std::string::npos || end <= begin) return std::nullopt;
  SweepHeader header{
      json["version"], line.substr(begin, end - begin), *points, {*index - 1, *count}};
  if (!Json::accept(header.config) || header_line(header) != line) return std::nullopt;
  return header;
}

std::string difference(const SweepHeader& wanted, const SweepHeader& found) {
  const auto values = [](const char* field, const auto& ours, const auto& theirs) {
    return fmt::format("{} = {}, {} in the file", field, ours, theirs);
  };
  if (wanted.version != found.version) return values("version", wanted.version, found.version);
  if (wanted.config != found.config) return of_configs(wanted.config, found.config);
  if (wanted.points != found.points) return values("points", wanted.points, found.points);
  if (wanted.shard.count != found.shard.count) {
    return values("shard.count", wanted.shard.count, found.shard.count);
  }
  if (wanted.shard.index != found.shard.index) {
    return values("shard.index", wanted.shard.index + 1, found.shard.index + 1);
  }
  return "";
}

}  // namespace flashbound
