#include "core/errors.hpp"
#include "experiments/command.hpp"
#include "experiments/io_error.hpp"
#include "experiments/sweep_line.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace flashbound {
namespace {

using Json = nlohmann::json;

// One shard's file, read a line at a time.
struct ShardFile {
  std::string path;
  std::ifstream in;
  Json header;
  std::string line{};
  std::optional<Index> point{};  // of the line; none after the last row
  bool complete = false;

  void advance() {
    point.reset();
    if (!next_line(in, line)) return;
    point = point_of_line(line);
    if (!point) complete = Json::parse(line, nullptr, false).is_object();
  }
};

ShardFile open_shard(const std::string& path) {
  ShardFile shard{.path = path, .in = std::ifstream(path, std::ios::binary), .header = {}};
  if (!shard.in) throw IoError("cannot read " + path + ": " + std::strerror(errno));
  std::string line;
  if (next_line(shard.in, line)) shard.header = Json::parse(line, nullptr, false);
  if (!shard.header.is_object() || shard.header.value("kind", "") != "flashbound-sweep") {
    throw ConfigError("input = " + path + ": must be a file that a sweep wrote");
  }
  shard.advance();
  return shard;
}

// All of one sweep, every shard once.
void require_whole(const std::vector<ShardFile>& shards) {
  const Index count = shards.front().header["shard"]["count"];
  std::vector<const ShardFile*> by_index(static_cast<std::size_t>(count), nullptr);
  for (const ShardFile& shard : shards) {
    for (const char* field : {"schema_version", "version", "config", "points"}) {
      if (shard.header[field] != shards.front().header[field]) {
        throw ConfigError("input = " + shard.path + ": must be of the sweep of " +
                          shards.front().path + ", but differs in " + field);
      }
    }
    if (shard.header["shard"]["count"] != count) {
      throw ConfigError("input = " + shard.path + ": must be one of " + std::to_string(count) +
                        " shards, as " + shards.front().path);
    }
    const Index index = shard.header["shard"]["index"];
    const ShardFile*& place = by_index[static_cast<std::size_t>(index - 1)];
    if (place != nullptr) {
      throw ConfigError("input = " + shard.path + ": must be another shard than " + place->path);
    }
    place = &shard;
  }
  for (std::size_t index = 0; index < by_index.size(); ++index) {
    if (by_index[index] == nullptr) {
      throw ConfigError("input: shard " + std::to_string(index + 1) + "/" + std::to_string(count) +
                        " is missing");
    }
  }
}

}  // namespace

// Rows in the order of their points, as one shard would have written them.
Outcome run_merge(const Options& options) {
  std::vector<ShardFile> shards;
  for (const std::string& path : split_commas(options.text("input"))) {
    shards.push_back(open_shard(path));
  }
  require_whole(shards);
  Outcome outcome;
  outcome.written_elsewhere = true;
  const Overwrite overwrite = options.flag("force") ? Overwrite::yes : Overwrite::no;
  outcome.files.push_back(std::make_unique<AtomicFile>(options.text("output"), overwrite));
  std::ostream& out = outcome.files.back()->stream();
  const Index points = shards.front().header["points"];
  const auto count = static_cast<Index>(shards.size());
  std::vector<ShardFile*> by_index(shards.size());
  for (ShardFile& shard : shards) {
    by_index[shard.header["shard"]["index"].get<std::size_t>() - 1] = &shard;
  }
  for (Index point = 0; point < points; ++point) {
    ShardFile& shard = *by_index[static_cast<std::size_t>(point % count)];
    if (shard.point != point) {
      throw ConfigError("input = " + shard.path + ": must be complete, but lacks point " +
                        std::to_string(point) + " (run its shard again)");
    }
    for (; shard.point == point; shard.advance()) out << shard.line << "\n";
  }
  for (const ShardFile& shard : shards) {
    if (!shard.complete) {
      throw ConfigError("input = " + shard.path + ": must be complete (run its shard again)");
    }
  }
  return outcome;
}

}  // namespace flashbound
