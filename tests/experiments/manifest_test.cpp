// What produced a result: equal results have equal configurations.
#include "experiments/manifest.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace flashbound {
namespace {

using Json = nlohmann::json;

const VerbText& verb(const char* name) { return *verb_named(name); }

Json manifest_of(const Options& options, const RunFacts& run = {}) {
  return Json::parse(manifest_json(options, run));
}

TEST_SUITE("experiments.manifest") {
  TEST_CASE("a manifest is one line of JSON with the build and the machine") {
    const std::vector<std::string> words{"--seqlen", "8"};
    const std::string text = manifest_json(parse_options(verb("count"), words), {});
    CHECK(text.find('\n') == std::string::npos);
    const Json manifest = Json::parse(text);
    for (const char* key : {"version", "git_hash", "git_dirty", "verb", "config", "seed",
                            "compiler", "flags", "build_type", "cpu", "simd", "gpu", "run"}) {
      CAPTURE(std::string(key));
      CHECK(manifest.contains(key));
    }
    CHECK(manifest["verb"] == "count");
    CHECK(manifest["config"]["seqlen"] == "8");
    CHECK(manifest["seed"].is_null());
  }

  TEST_CASE("options that change no result are under run") {
    for (const VerbText& each : verb_texts()) {
      CAPTURE(std::string(each.name));
      const Options plain(each);
      Options moved(each);
      for (const char* name : {"output", "force", "quiet", "threads", "config", "format", "o",
                               "lse-out", "record-out", "program-out"}) {
        moved.set(name, {"elsewhere", "command line"});
      }
      RunFacts facts;
      facts.argv = {"count", "--force"};
      facts.duration_s = 2.5;
      facts.threads = 7;
      const Json manifest = manifest_of(moved, facts);
      CHECK(manifest["config"] == manifest_of(plain)["config"]);
      CHECK(manifest["run"]["options"]["output"] == "elsewhere");
      CHECK(manifest["run"]["threads"] == 7);
      CHECK(manifest["run"]["duration_s"] == 2.5);
      CHECK(manifest["run"]["argv"] == Json({"count", "--force"}));
    }
  }

  TEST_CASE("options that change results are in the configuration") {
    for (const VerbText& each : verb_texts()) {
      for (const char* name : {"seed", "problem", "seqlen", "mask", "dtype", "algorithm", "kernel",
                               "q", "k", "v", "sram", "method", "alibi"}) {
        CAPTURE(std::string(name));
        Options options(each);
        options.set(name, {"other", "command line"});
        CHECK(manifest_of(options)["config"][name] == "other");
      }
    }
    const std::vector<std::string> words{"--seed", "42"};
    CHECK(manifest_of(parse_options(verb("verify"), words))["seed"] == "42");
  }

  TEST_CASE("words that are no UTF-8 still make JSON") {
    Options options(verb("count"));
    options.set("record-out", {"\xFF\n\"", "command line"});
    RunFacts facts;
    facts.argv = {"\xC0\x80"};
    CHECK(Json::accept(manifest_json(options, facts)));
  }

  TEST_CASE("times are in UTC as ISO 8601 writes them") {
    const std::string now = utc_now();
    REQUIRE(now.size() == 20);
    CHECK(now[4] == '-');
    CHECK(now[10] == 'T');
    CHECK(now[13] == ':');
    CHECK(now[19] == 'Z');
  }
}

}  // namespace
}  // namespace flashbound
