#include "core/errors.hpp"
#include "experiments/command.hpp"
#include "experiments/io_error.hpp"
#include "experiments/sweep_header.hpp"
#include "experiments/sweep_line.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace flashbound {
namespace {

// One shard's file, read a line at a time.
struct ShardFile {
  std::string path;
  std::ifstream in;
  SweepHeader header{};
  std::string line{};
  std::optional<Index> point{};  // of the line; none after the last row

  void advance() {
    point.reset();
    if (next_line(in, line)) point = point_of_line(line);
  }
  Index own_points() const { return points_of_shard(header.points, header.shard); }
  // Whether the last line stands where no row is left, and nothing behind it.
  bool complete() {
    std::string rest;
    return line == trailer_line(own_points()) && !next_line(in, rest) && rest.empty();
  }
};

ShardFile open_shard(const std::string& path) {
  ShardFile shard{.path = path, .in = std::ifstream(path, std::ios::binary)};
  if (!shard.in) throw IoError("cannot read " + path + ": " + std::strerror(errno));
  std::string line;
  std::optional<SweepHeader> header;
  if (next_line(shard.in, line)) header = parse_header(line);
  if (!header) throw ConfigError("input = " + path + ": must be a file that a sweep wrote");
  shard.header = *std::move(header);
  shard.advance();
  return shard;
}

// All of one sweep, every shard once: by index.
std::vector<ShardFile*> require_whole(std::vector<ShardFile>& shards) {
  const Index count = shards.front().header.shard.count;
  std::vector<ShardFile*> by_index(shards.size(), nullptr);
  for (ShardFile& shard : shards) {
    SweepHeader wanted = shards.front().header;
    wanted.shard.index = shard.header.shard.index;
    const std::string differs = difference(wanted, shard.header);
    if (!differs.empty()) {
      throw ConfigError("input = " + shard.path + ": must be of the sweep of " +
                        shards.front().path + ", but " + differs);
    }
    for (const ShardFile* other : by_index) {
      if (other != nullptr && other->header.shard.index == shard.header.shard.index) {
        throw ConfigError("input = " + shard.path + ": must be another shard than " + other->path);
      }
    }
    const auto index = static_cast<std::size_t>(shard.header.shard.index);
    if (index < by_index.size()) by_index[index] = &shard;
  }
  for (std::size_t index = 0; index < static_cast<std::size_t>(count); ++index) {
    if (index >= by_index.size() || by_index[index] == nullptr) {
      throw ConfigError("input: shard " + std::to_string(index + 1) + "/" + std::to_string(count) +
                        " is missing");
    }
  }
  return by_index;
}

}  // namespace

// The file that a single shard would have written.
Outcome run_merge(const Options& options) {
  if (options.given("format") && options.text("format") != "jsonl") {
    reject("format", options.text("format"), "jsonl");
  }
  std::vector<ShardFile> shards;
  for (const std::string& path : split_commas(options.text("input"))) {
    shards.push_back(open_shard(path));
  }
  const std::vector<ShardFile*> by_index = require_whole(shards);
  Outcome outcome;
  outcome.written_elsewhere = true;
  const Overwrite overwrite = options.flag("force") ? Overwrite::yes : Overwrite::no;
  outcome.files.push_back(std::make_unique<AtomicFile>(options.text("output"), overwrite));
  std::ostream& out = outcome.files.back()->stream();
  SweepHeader header = shards.front().header;
  header.shard = {};
  out << header_line(header) << "\n";
  for (Index point = 0; point < header.points; ++point) {
    ShardFile& shard = *by_index[static_cast<std::size_t>(point) % by_index.size()];
    if (shard.point != point) {
      throw ConfigError("input = " + shard.path + ": must be complete, but lacks point " +
                        std::to_string(point) + " (run its shard again)");
    }
    for (; shard.point == point; shard.advance()) out << shard.line << "\n";
  }
  for (ShardFile& shard : shards) {
    if (!shard.complete()) {
      throw ConfigError("input = " + shard.path + ": must be complete (run its shard again)");
    }
  }
  out << trailer_line(header.points) << "\n";
  return outcome;
}

}  // namespace flashbound
