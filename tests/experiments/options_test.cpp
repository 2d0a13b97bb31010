// Where a value comes from: the command line over a configuration file over defaults.
#include "experiments/options.hpp"

#include "experiments/io_error.hpp"
#include "tests/experiments/rejection.hpp"
#include "tests/experiments/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace flashbound {
namespace {

using testing::contains;
using testing::rejection;
using Words = std::vector<std::string>;

const VerbText& verb(const char* name) { return *verb_named(name); }

Options count_options(const Words& words) { return parse_options(verb("count"), words); }

Options from_config(const std::string& text, Options options = Options(verb("count"))) {
  std::istringstream in(text);
  parse_config(in, "my.conf", options);
  return options;
}

TEST_SUITE("experiments.options") {
  TEST_CASE("defaults yield to the file and the file to the command line") {
    const testing::TemporaryFolder folder("options");
    const std::string path = folder.file("my.conf");
    testing::write_file(path, "# mine\nhead-dim = 96\nblock-q = 32\n\nalibi = true\n");
    const Options options = count_options({"--config", path, "--block-q", "16", "--seqlen=4096"});
    CHECK(options.text("dtype") == "fp16");
    CHECK(options.text("head-dim") == "96");
    CHECK(options.integer("block-q", 1, 100) == 16);
    CHECK(options.integer("seqlen") == 4096);
    CHECK(options.flag("alibi"));
    CHECK(options.values().at("dtype").origin == "default");
    CHECK(options.values().at("head-dim").origin == path);
    CHECK(options.values().at("block-q").origin == "command line");
  }

  TEST_CASE("only what was written counts as given") {
    const Options options = from_config("head-dim = 64\n", count_options({"--mask", "none"}));
    CHECK(options.given("mask"));  // although equal to its default
    CHECK(options.given("head-dim"));
    CHECK(!options.given("dtype"));
    CHECK(!options.given("alibi"));
    CHECK(!options.given("seqlen"));
    CHECK(options.find("dtype") == "fp16");
    CHECK(options.find("seqlen") == std::nullopt);
    CHECK(rejection([&] { options.text("seqlen"); }) == "seqlen: is required by count");
  }

  TEST_CASE("seqlen-k is another name of seqlen-kv") {
    CHECK(count_options({"--seqlen-k", "7"}).text("seqlen-kv") == "7");
    CHECK(from_config("seqlen-k = 7\n").text("seqlen-kv") == "7");
    CHECK(from_config("seqlen-kv = 7\n", count_options({"--seqlen-k", "8"})).text("seqlen-kv") ==
          "8");
    CHECK(rejection([] {
            count_options({"--seqlen-k", "7", "--seqlen-kv", "7"});
          }) == "seqlen-kv: is given twice");
    CHECK(rejection([] { from_config("seqlen-k = 7\nseqlen-kv = 7\n"); }) ==
          "my.conf: seqlen-kv: is given twice");
  }

  TEST_CASE("twice in one place is refused") {
    CHECK(rejection([] {
            count_options({"--mask", "none", "--mask=none"});
          }) == "mask: is given twice");
    CHECK(rejection([] { count_options({"--alibi", "--alibi"}); }) == "alibi: is given twice");
    CHECK(rejection([] { from_config("mask = none\nmask = none\n"); }) ==
          "my.conf: mask: is given twice");
  }

  TEST_CASE("flags are words on the command line and true or false in a file") {
    CHECK(count_options({"--alibi"}).flag("alibi"));
    CHECK(!count_options({}).flag("alibi"));
    CHECK(from_config("alibi = true\n").flag("alibi"));
    CHECK(!from_config("alibi = false\n").flag("alibi"));
    for (const char* value : {"yes", "1", "True", "on"}) {
      CAPTURE(std::string(value));
      const Options options = from_config(std::string("alibi = ") + value + "\n");
      CHECK(rejection([&] { options.flag("alibi"); }) ==
            std::string("alibi = ") + value + ": must be true or false");
    }
    CHECK(rejection([] { count_options({"--alibi=true"}); }) != "accepted");
    CHECK(rejection([] {
            count_options({"--alibi", "true"});
          }) == "unexpected word 'true': options begin with --");
  }

  TEST_CASE("a value may begin with a dash and an option without a value is refused") {
    CHECK(count_options({"--window-left", "-1"}).integer("window-left") == -1);
    CHECK(count_options({"--window-left=-1"}).integer("window-left") == -1);
    CHECK(rejection([] { count_options({"--mask"}); }) == "--mask: needs a value");
    CHECK(rejection([] { count_options({"--mask", "--alibi"}); }) == "--mask: needs a value");
    CHECK(rejection([] { count_options({"--output", "--force"}); }) == "--output: needs a value");
    CHECK(count_options({"--output=--force"}).text("output") == "--force");
  }

  TEST_CASE("names are whole and belong to the verb") {
    CHECK(rejection([] {
            count_options({"--seqln", "4"});
          }) == "unknown option --seqln of count: did you mean --seqlen?");
    CHECK(rejection([] { count_options({"--head", "4"}); }) != "accepted");  // no abbreviations
    CHECK(contains(rejection([] {
                     count_options({"--kernel", "reference"});
                   }),
                   "unknown option --kernel of count"));
    CHECK(
        contains(rejection([] { from_config("zzzzzzzzz = 1\n"); }), "see flashbound count --help"));
    CHECK(rejection([] { count_options({"4096"}); }) ==
          "unexpected word '4096': options begin with --");
    CHECK(rejection([] { count_options({"--", "4096"}); }) != "accepted");
    CHECK(rejection([] { count_options({""}); }) != "accepted");
    CHECK(rejection([] { count_options({"-"}); }) != "accepted");
  }

  TEST_CASE("a file holds key = value lines and nothing else") {
    CHECK(from_config("").values().size() == Options(verb("count")).values().size());
    CHECK(from_config("  head-dim=96  # columns\n").text("head-dim") == "96");
    for (const char* text : {"head-dim\n", "[count]\nhead-dim = 96\n", "= 4\n", "\x01\xFF\n"}) {
      CAPTURE(std::string(text));
      CHECK(rejection([&] { from_config(text); }) != "accepted");
    }
    CHECK(rejection([] { from_config("config = other.conf\n"); }) ==
          "my.conf: config: belongs on the command line");
    CHECK(rejection([] { from_config("print-config = true\n"); }) ==
          "my.conf: print-config: belongs on the command line");
    const Options empty = from_config("mask =\n");
    CHECK(rejection([&] { empty.text("mask"); }) == "mask = '': must be not empty");
  }

  TEST_CASE("a file that cannot be read is an IoError and a folder a ConfigError") {
    const testing::TemporaryFolder folder("config");
    CHECK_THROWS_AS(count_options({"--config", folder.file("absent")}), IoError);
    CHECK(contains(rejection([&] {
                     count_options({"--config", folder.file("")});
                   }),
                   "must be a file"));
  }

  TEST_CASE("integers are held to their range") {
    const Options options = count_options({"--stages", "8"});
    CHECK(options.integer("stages", 8, 8) == 8);
    CHECK(rejection([&] { options.integer("stages", 9, 12); }) == "stages = 8: must be in [9, 12]");
    CHECK(rejection([&] { options.integer("stages", 1, 7); }) == "stages = 8: must be in [1, 7]");
  }

  TEST_CASE("a printed configuration reads back as equal values for every verb") {
    for (const VerbText& each : verb_texts()) {
      CAPTURE(std::string(each.name));
      Options options(each);
      // Every option that takes a value gets one of its own.
      for (const OptionText& option : option_texts()) {
        if ((option.verbs & each.verb) == 0 || option.name == "config" ||
            option.name == "print-config") {
          continue;
        }
        const bool flag = option.metavar.empty();
        options.set(std::string(option.name),
                    {flag ? "true" : "some value of " + std::string(option.name), "command line"});
      }
      const Options again = from_config(print_config(options), Options(each));
      REQUIRE(again.values().size() == options.values().size());
      for (const auto& [name, value] : options.values()) {
        CAPTURE(name);
        CHECK(again.find(name) == value.text);
      }
    }
  }

  TEST_CASE("a printed configuration names where each value came from") {
    const std::string printed = print_config(count_options({"--seqlen", "8"}));
    CHECK(contains(printed, "# flashbound count\n"));
    CHECK(contains(printed, "# from: command line\nseqlen = 8\n"));
    CHECK(contains(printed, "# from: default\n# head-dim = 64\n"));
    CHECK(!contains(printed, "print-config"));
  }

  TEST_CASE("values that no file can hold are not printed as others") {
    for (const char* value : {"a#b", " a", "a ", "a\nmask = causal", "\t"}) {
      CAPTURE(std::string(value));
      const Options options = count_options({"--record-out", value});
      std::string printed;
      const std::string outcome = rejection([&] { printed = print_config(options); });
      if (outcome == "accepted") CHECK(from_config(printed).find("record-out") == value);
    }
  }

  TEST_CASE("a file may have the name of an origin") {
    for (const char* name : {"default", "command line"}) {
      Options options(verb("count"));
      std::istringstream in("seqlen = 8\n");
      parse_config(in, name, options);
      CHECK(options.given("seqlen"));
      CHECK(contains(print_config(options), "\nseqlen = 8\n"));
    }
  }

  TEST_CASE("the name of a file cannot smuggle a choice into what is printed") {
    Options options(verb("count"));
    options.set("seqlen", {"8", "my.conf\nmask = causal\n"});
    const Options again = from_config(print_config(options));
    CHECK(again.text("seqlen") == "8");
    CHECK(!again.given("mask"));
  }

  TEST_CASE("every option is described once a verb and sweeps where it is taken") {
    std::map<std::string_view, unsigned> seen;
    for (const OptionText& option : option_texts()) {
      CAPTURE(std::string(option.name));
      CHECK((seen[option.name] & option.verbs) == 0);
      seen[option.name] |= option.verbs;
      CHECK((option.swept & ~option.verbs) == 0);
      CHECK(!option.doc.empty());
      CHECK(option.verbs != 0);
      const bool is_flag = option.metavar.empty();
      if (is_flag) CHECK(option.fallback.empty());
    }
  }
}

}  // namespace
}  // namespace flashbound
