// The simulator's side of the check against cachegrind; `check` runs it.
//
// flashbound_cachegrind_check RUN.json <LACKEY'S OUTPUT >RUN.json
// adds to every last level what replays of the accesses and the model of the program count.
#include "experiments/cachegrind/lackey_replay.hpp"
#include "experiments/cachegrind/recorded_run.hpp"
#include "experiments/cachegrind/tiled_model.hpp"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

namespace flashbound {
namespace {

void check(const char* path) {
  std::ifstream file(path);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(file);
  const TiledRun run = tiled_run(json);
  LackeyReplay everything(run, Replayed::everything);
  LackeyReplay alone(run, Replayed::arrays_alone);
  std::string line;
  while (std::getline(std::cin, line)) {
    everything.line(line);
    alone.line(line);
  }
  json["straddling_accesses"] = everything.straddling();
  json["foreign_lines"] = everything.foreign_lines();
  for (std::size_t l = 0; l < run.last.size(); ++l) {
    nlohmann::ordered_json& level = json["last_levels"][l];
    level["replay"] = to_json(everything.counts()[l].all);
    level["foreign_lines_in_a_set"] = everything.foreign_lines_in_a_set(run.last[l]);
    level["replay_misses"] = everything.counts()[l].arrays;
    level["arrays_alone_misses"] = alone.counts()[l].arrays;
    level["model_misses"] = modelled_misses(run, run.last[l]);
  }
  std::cout << json.dump(1) << '\n';
}

}  // namespace
}  // namespace flashbound

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  if (argc != 2) {
    std::fputs("flashbound_cachegrind_check RUN.json <LACKEY'S OUTPUT\n", stderr);
    return 2;
  }
  try {
    flashbound::check(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flashbound_cachegrind_check: error: %s\n", error.what());
    return 2;
  }
  return 0;
}
