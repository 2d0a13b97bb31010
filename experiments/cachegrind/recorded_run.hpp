// A run as results.json has it.
#pragma once

#include "experiments/cachegrind/cachegrind_counts.hpp"
#include "experiments/cachegrind/tiled_run.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace flashbound {

// "SIZE,WAYS,LINE" in bytes, as valgrind takes it; an LRU level that fetches on write misses.
// Throws ConfigError for anything else.
CacheLevel level_of(const std::string& level, const std::string& geometry);

// Throws nlohmann's exceptions where a member is missing or of another type.
TiledRun tiled_run(const nlohmann::ordered_json& run);
CachegrindCounts counts_of(const nlohmann::ordered_json& counts);
nlohmann::ordered_json to_json(const CachegrindCounts& counts);

}  // namespace flashbound
