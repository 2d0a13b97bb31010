#include "experiments/cachegrind/recorded_run.hpp"

#include "core/errors.hpp"

#include <array>
#include <charconv>

namespace flashbound {

CacheLevel level_of(const std::string& level, const std::string& geometry) {
  std::array<Index, 3> numbers{};
  const char* at = geometry.data();
  const char* const end = at + geometry.size();
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const auto read = std::from_chars(at, end, numbers[n]);
    const bool closed =
        n + 1 < numbers.size() ? read.ptr != end && *read.ptr == ',' : read.ptr == end;
    if (read.ec != std::errc{} || !closed) reject(level, geometry, "SIZE,WAYS,LINE");
    at = closed && n + 1 < numbers.size() ? read.ptr + 1 : end;
  }
  return {.name = level,
          .capacity = Bytes(numbers[0]),
          .line_bytes = numbers[2],
          .ways = numbers[1],
          .write_miss = WriteMiss::fetch};
}

TiledRun tiled_run(const nlohmann::ordered_json& run) {
  TiledRun tiled{.seqlen_q = run.at("seqlen_q"),
                 .seqlen_kv = run.at("seqlen_kv"),
                 .head_dim = run.at("head_dim"),
                 .block_q = run.at("block_q"),
                 .block_kv = run.at("block_kv"),
                 .instructions = level_of("I1", run.at("i1")),
                 .data = level_of("D1", run.at("d1"))};
  for (const auto& array : run.at("arrays")) {
    tiled.arrays.push_back({array.at("name"), array.at("address"), array.at("bytes")});
  }
  for (const auto& last : run.at("last_levels")) {
    tiled.last.push_back(level_of("LL", last.at("geometry")));
  }
  return tiled;
}

CachegrindCounts counts_of(const nlohmann::ordered_json& counts) {
  const auto count = [&](const char* kind) {
    const auto& of = counts.at(kind);
    return CachegrindCount{of.at("accesses"), of.at("first_misses"), of.at("last_misses")};
  };
  return {count("instructions"), count("reads"), count("writes")};
}

nlohmann::ordered_json to_json(const CachegrindCounts& counts) {
  const auto json = [](const CachegrindCount& count) {
    return nlohmann::ordered_json{{"accesses", count.accesses},
                                  {"first_misses", count.first_misses},
                                  {"last_misses", count.last_misses}};
  };
  return {{"instructions", json(counts.instructions)},
          {"reads", json(counts.reads)},
          {"writes", json(counts.writes)}};
}

}  // namespace flashbound
