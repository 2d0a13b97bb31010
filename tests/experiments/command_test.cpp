// The command as a function: exit codes, and errors of one line.
#include "experiments/command.hpp"

#include "tests/experiments/rejection.hpp"
#include "tests/experiments/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

namespace flashbound {
namespace {

using testing::contains;
using testing::read_file;
using testing::TemporaryFolder;
using Words = std::vector<std::string>;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran run(const Words& words) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_command(words, out, err);
  return {code, out.str(), err.str()};
}

void check_one_line_error(const Ran& ran, int code) {
  CAPTURE(ran.err);
  CHECK(ran.code == code);
  CHECK(ran.out.empty());
  CHECK(ran.err.rfind("flashbound: error: ", 0) == 0);
  REQUIRE(!ran.err.empty());
  CHECK(ran.err.back() == '\n');
  CHECK(std::none_of(ran.err.begin(), ran.err.end() - 1,
                     [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }));
}

const Words kSmall{"count", "--seqlen", "128", "--algorithm", "flash2"};

Words small_with(const Words& more) {
  Words words = kSmall;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_SUITE("experiments.command") {
  TEST_CASE("help and version and manual succeed without a verb's options") {
    for (const Words& words : {Words{"--help"},
                               {"-h"},
                               {"help"},
                               {"--version"},
                               {"-V"},
                               {"--man"},
                               {"count", "--help"},
                               {"attend", "-h"}}) {
      CAPTURE(words[0]);
      const Ran ran = run(words);
      CHECK(ran.code == 0);
      CHECK(!ran.out.empty());
      CHECK(ran.err.empty());
    }
    for (const VerbText& verb : verb_texts()) {
      const Ran ran = run({std::string(verb.name), "--help"});
      for (const OptionText& option : option_texts()) {
        CAPTURE(std::string(option.name));
        const bool is_shown = contains(ran.out, "--" + std::string(option.name));
        if ((option.verbs & verb.verb) != 0) CHECK(is_shown);
      }
    }
  }

  TEST_CASE("wrong words are usage errors of one line") {
    for (const Words& words : {Words{},
                               {"cuont"},
                               {""},
                               {"--seqlen", "4"},
                               {"count"},
                               {"count", "--seqlen", "0"},
                               {"count", "--seqlen", "x"},
                               {"count", "--seqlen", "4", "--format", "xml"},
                               {"count", "--seqlen", "4", "--algorithm", "flash9"},
                               {"verify", "--problem", "none"},
                               {"list", "--seqlen", "4"},
                               {"attend"},
                               {"count", "--seqlen", "4", "--sram", "0"}}) {
      check_one_line_error(run(words), 2);
    }
    CHECK(contains(run({"cuont"}).err, "did you mean count?"));
  }

  TEST_CASE("errors stay one line whatever bytes the words hold") {
    std::string control;
    for (int c = 1; c < 32; ++c) control += static_cast<char>(c);
    control += "\x7f\xff";
    check_one_line_error(run({control}), 2);
    check_one_line_error(run({"count", control}), 2);
    check_one_line_error(run({"count", "--" + control}), 2);
    check_one_line_error(run({"count", "--seqlen", control}), 2);
    check_one_line_error(run({"count", "--seqlen=4\n\x1b[31m"}), 2);
    check_one_line_error(run({"count", "--config", "/none/" + control}), 3);
    check_one_line_error(run({"verify", "--problem", control}), 2);
  }

  TEST_CASE("an environment that fails is another code") {
    const TemporaryFolder folder("command");
    check_one_line_error(run({"count", "--config", folder.file("absent")}), 3);
    check_one_line_error(run(small_with({"--output", folder.file("none/x.csv")})), 3);
    check_one_line_error(run({"attend", "--q", folder.file("q.npy"), "--k", folder.file("k.npy"),
                              "--v", folder.file("v.npy"), "--o", folder.file("o.npy")}),
                         3);
    CHECK(folder.entries() == 0);
    std::ostringstream out;
    out.setstate(std::ios::badbit);  // a full disk
    std::ostringstream err;
    CHECK(run_command(kSmall, out, err) == 3);
    CHECK(contains(err.str(), "cannot write standard output"));
  }

  TEST_CASE("results go to the stream in every format") {
    const Ran json = run(small_with({"--format", "json"}));
    CHECK(json.code == 0);
    CHECK(json.err.empty());
    const auto document = nlohmann::json::parse(json.out);
    CHECK(document["manifest"]["verb"] == "count");
    CHECK(document["rows"].size() == 2);  // closed form and machine
    CHECK(document["rows"][0]["hbm_bytes"] == document["rows"][1]["hbm_bytes"]);
    const Ran lines = run(small_with({"--format", "jsonl", "--method", "machine"}));
    CHECK(nlohmann::json::parse(lines.out) == document["rows"][1]);
    CHECK(contains(run(small_with({"--format", "csv"})).out, "algorithm,dtype,batch,"));
    CHECK(contains(run(kSmall).out, "flash2"));
  }

  TEST_CASE("results in a file have their manifest beside them") {
    const TemporaryFolder folder("command");
    const std::string path = folder.file("x.csv");
    const Words words = small_with({"--format", "csv", "--output", path});
    const Ran ran = run(words);
    CHECK(ran.code == 0);
    CHECK(ran.out.empty());
    CHECK(folder.entries() == 2);
    CHECK(read_file(path) == run(small_with({"--format", "csv"})).out);
    const auto manifest = nlohmann::json::parse(read_file(path + ".manifest.json"));
    CHECK(manifest["run"]["argv"] == words);
    check_one_line_error(run(words), 2);  // it exists
    CHECK(run(small_with({"--format", "csv", "--output", path, "--force"})).code == 0);
    const std::string json_path = folder.file("x.json");
    CHECK(run(small_with({"--format", "json", "--output", json_path})).code == 0);
    CHECK(folder.entries() == 3);  // holds its manifest itself
  }

  TEST_CASE("a run that fails leaves no file") {
    const TemporaryFolder folder("command");
    check_one_line_error(
        run({"count", "--seqlen", "0", "--output", folder.file("x.csv"), "--format", "csv"}), 2);
    CHECK(folder.entries() == 0);
  }

  TEST_CASE("a printed configuration runs as the words did") {
    const TemporaryFolder folder("command");
    const Words words = small_with({"--mask", "causal", "--head-dim", "96", "--format", "jsonl"});
    Words print = words;
    print.emplace_back("--print-config");
    const Ran printed = run(print);
    CHECK(printed.code == 0);
    testing::write_file(folder.file("my.conf"), printed.out);
    const Ran again = run({"count", "--config", folder.file("my.conf")});
    CHECK(again.code == 0);
    CHECK(again.out == run(words).out);
  }

  TEST_CASE("fast memory that is too small is no error but infeasible") {
    const Ran ran = run(small_with({"--sram", "1B", "--format", "jsonl", "--method", "machine"}));
    CHECK(ran.code == 0);
    CHECK(nlohmann::json::parse(ran.out)["status"] == "infeasible");
  }

  TEST_CASE("counts beyond 128 bits are no crash") {
    const Ran ran = run({"count", "--seqlen", "4294967296", "--num-heads", "65536", "--batch",
                         "16777216", "--head-dim", "576", "--format", "jsonl"});
    CAPTURE(ran.err);
    CHECK((ran.code == 0 || ran.code == 2));
  }

  TEST_CASE("an interrupted count says so and keeps the rows that are finished") {
    interrupted = true;
    const Ran ran = run(small_with({"--format", "jsonl"}));
    interrupted = false;
    CHECK(ran.code == 130);
    CHECK(ran.out.empty());
  }

  TEST_CASE("list names every algorithm and is the same twice") {
    const Ran ran = run({"list", "--format", "csv"});
    CHECK(ran.code == 0);
    CHECK(contains(ran.out, "flash2"));
    CHECK(contains(ran.out, "llama-2-7b"));
    CHECK(run({"list", "--format", "csv"}).out == ran.out);
  }
}

}  // namespace
}  // namespace flashbound
