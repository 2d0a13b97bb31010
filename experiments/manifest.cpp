#include "experiments/manifest.hpp"

#include "experiments/build_info.hpp"

#include <Eigen/Core>
#include <boost/version.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <set>
#include <sys/utsname.h>
#include <unistd.h>

namespace flashbound {
namespace {

using Json = nlohmann::ordered_json;

const std::set<std::string> kVolatileOptions{"output", "force",        "quiet",      "threads",
                                             "config", "print-config", "format",     "o",
                                             "report", "lse-out",      "record-out", "program-out"};

// The first "key : value" line of /proc/cpuinfo with this key.
std::string cpu_fact(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// Of the widest vector units that this build uses: it is compiled for the baseline.
std::string simd_target() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__SSE2__)
  return "SSE2";
#elif defined(__ARM_NEON)
  return "NEON";
#else
  return "none";
#endif
}

// Versions of the libraries that this build includes.
Json packages() {
  const auto version = [](int major, int minor, int patch) {
    return fmt::format("{}.{}.{}", major, minor, patch);
  };
  return {
      {"boost", version(BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
      {"eigen", version(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
      {"fmt", version(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann_json", version(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                NLOHMANN_JSON_VERSION_PATCH)}};
}

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "unknown";
}

}  // namespace

std::string manifest_json(const Options& options, const RunFacts& run) {
  const BuildInfo& build = build_info();
  Json config = Json::object();
  Json places = Json::object();
  for (const auto& [name, value] : options.values()) {
    (kVolatileOptions.count(name) != 0 ? places : config)[name] = value.text;
  }
  const auto seed = options.find("seed");
  const Json manifest{{"version", build.version},
                      {"git_hash", build.git_hash},
                      {"git_dirty", build.git_dirty},
                      {"verb", options.verb().name},
                      {"config", config},
                      {"seed", seed ? Json(*seed) : Json(nullptr)},
                      {"compiler", build.compiler},
                      {"flags", build.flags},
                      {"build_type", build.build_type},
                      {"packages", packages()},
                      {"cpu", cpu_fact("model name")},
                      {"simd", simd_target()},
                      {"gpu", nullptr},
                      {"run",
                       {{"argv", run.argv},
                        {"options", places},
                        {"started_utc", run.started_utc},
                        {"duration_s", run.duration_s},
                        {"host", host_name()},
                        {"threads", run.threads}}}};
  return manifest.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace flashbound
