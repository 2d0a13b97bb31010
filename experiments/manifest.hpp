// What produced a result: build, options, machine. Volatile facts sit under "run".
#pragma once

#include "experiments/options.hpp"

#include <string>
#include <vector>

namespace flashbound {

struct RunFacts {
  std::vector<std::string> argv;
  std::string started_utc;  // ISO 8601
  double duration_s = 0;
  Index threads = 1;
};

// A JSON object. Where output goes and how many threads work changes no result: those options are
// under "run" as well, so that equal results have equal configurations.
std::string manifest_json(const Options& options, const RunFacts& run);

std::string utc_now();

}  // namespace flashbound
