// Options become a problem; what contradicts itself is refused, never guessed.
#include "experiments/problem_options.hpp"

#include "experiments/io_error.hpp"
#include "tests/experiments/npy_bytes.hpp"
#include "tests/experiments/rejection.hpp"
#include "tests/experiments/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace flashbound {
namespace {

using testing::contains;
using testing::rejection;
using Words = std::vector<std::string>;

Problem problem_from(const Words& words, const std::optional<KnownShape>& known = std::nullopt) {
  return problem_of(parse_options(*verb_named("count"), words), known, Emptiness::rejected);
}

std::string problem_rejection(const Words& words,
                              const std::optional<KnownShape>& known = std::nullopt) {
  return rejection([&] { problem_from(words, known); });
}

// Of `words` after a length that is legal.
Words with_length(Words words) {
  words.insert(words.begin(), {"--seqlen", "128"});
  return words;
}

TEST_SUITE("experiments.problem_options") {
  TEST_CASE("one length and the defaults are a problem") {
    Problem expected;
    expected.seqlen_q = 128;
    expected.seqlen_kv = 128;
    expected.head_dim = 64;
    expected.head_dim_v = 64;
    CHECK(problem_from(with_length({})) == expected);
    CHECK(mask_name(expected) == "none");
  }

  TEST_CASE("head_dim_v is head_dim unless it is given") {
    CHECK(problem_from(with_length({"--head-dim", "96"})).head_dim_v == 96);
    const Problem mla = problem_from(with_length({"--head-dim", "192", "--head-dim-v", "128"}));
    CHECK(mla.head_dim == 192);
    CHECK(mla.head_dim_v == 128);
  }

  TEST_CASE("both sides are named together or apart but not both") {
    const Problem apart = problem_from(
        {"--seqlen-q", "3", "--seqlen-kv", "5", "--num-heads-q", "8", "--num-heads-kv", "2"});
    CHECK(apart.seqlen_q == 3);
    CHECK(apart.seqlen_kv == 5);
    CHECK(apart.num_heads_q == 8);
    CHECK(apart.num_heads_kv == 2);
    const Problem together = problem_from(with_length({"--num-heads", "8"}));
    CHECK(together.num_heads_q == 8);
    CHECK(together.num_heads_kv == 8);
    CHECK(problem_rejection(with_length({"--seqlen-q", "128"})) ==
          "seqlen: is given beside seqlen-q: must be one or the other");
    CHECK(problem_rejection(with_length({"--seqlen-k", "128"})) ==
          "seqlen: is given beside seqlen-kv: must be one or the other");
    CHECK(problem_rejection(with_length({"--num-heads", "2", "--num-heads-kv", "1"})) ==
          "num-heads: is given beside num-heads-kv: must be one or the other");
    CHECK(problem_rejection({"--seqlen-q", "3"}) == "seqlen: is required by count");
    CHECK(problem_rejection({}) == "seqlen: is required by count");
  }

  TEST_CASE("masks and windows agree or are refused") {
    const auto window = [](const Words& words) {
      const Problem p = problem_from(with_length(words));
      return std::pair(p.window_left, p.window_right);
    };
    using Window = std::pair<Index, Index>;
    CHECK(window({"--mask", "causal"}) == Window{-1, 0});
    CHECK(window({"--mask", "causal", "--window-right", "0"}) == Window{-1, 0});
    CHECK(window({"--mask", "causal", "--window-left", "7"}) == Window{7, 0});
    CHECK(window({"--mask", "window", "--window-left", "7"}) == Window{7, -1});
    CHECK(window({"--window-right", "3"}) == Window{-1, 3});
    CHECK(problem_rejection(with_length({"--mask", "none", "--window-left", "4"})) ==
          "mask = none: is given beside a window: must be window or causal");
    CHECK(problem_rejection(with_length({"--mask", "causal", "--window-right", "1"})) ==
          "window-right = 1: must be 0 with mask = causal");
    CHECK(problem_rejection(with_length({"--mask", "window"})) ==
          "mask = window: needs --window-left or --window-right");
    CHECK(problem_rejection(with_length({"--mask", "sliding"})) ==
          "mask = sliding: must be none, causal or window");
    CHECK(problem_rejection(with_length({"--mask", "window", "--window-left", "-2"})) !=
          "accepted");
    CHECK(mask_name(problem_from(with_length({"--mask", "causal"}))) == "causal");
    CHECK(mask_name(problem_from(with_length({"--window-right", "3"}))) == "window");
    CHECK(mask_name(problem_from(with_length({"--mask", "causal", "--window-left", "3"}))) ==
          "window");
  }

  TEST_CASE("packed sequences say their lengths themselves") {
    const Problem p = problem_from({"--cu-seqlens-q", "0,3,10", "--cu-seqlens-kv", "0,5,6"});
    CHECK(p.cu_seqlens_q == std::vector<Index>{0, 3, 10});
    CHECK(p.cu_seqlens_kv == std::vector<Index>{0, 5, 6});
    CHECK(p.seqlen_q == 10);
    CHECK(p.seqlen_kv == 6);
    const Words both{"--cu-seqlens-q", "0,3,10", "--cu-seqlens-kv", "0,5,10"};
    const auto with = [&](std::initializer_list<const char*> more) {
      Words words = both;
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
    CHECK(problem_from(with({"--seqlen", "10"})).seqlen_q == 10);
    CHECK(contains(problem_rejection(with({"--seqlen", "9"})), "seqlen = 9: must be 10"));
    CHECK(problem_rejection(with({"--batch", "2"})) != "accepted");
    CHECK(problem_rejection({"--cu-seqlens-q", "0,3", "--seqlen-kv", "3"}) != "accepted");
    for (const char* text : {"0,,3", "0,3,", "0,x", "3,0", "1,3", "", "0, 3", "0,5,3", "-1,3"}) {
      CAPTURE(std::string(text));
      CHECK(problem_rejection({"--cu-seqlens-q", text, "--cu-seqlens-kv", "0,3"}) != "accepted");
    }
  }

  TEST_CASE("packed lengths may be a file of integers with one axis") {
    const testing::TemporaryFolder folder("cu");
    const auto file = [&](const char* descr, const char* shape, const std::string& elements) {
      const std::string path = folder.file("cu.npy");
      testing::write_file(path,
                          testing::npy_bytes(testing::npy_dictionary(descr, shape), elements));
      return path;
    };
    const auto offsets = testing::raw<std::int32_t>({0, 3, 10});
    const std::string good = file("<i4", "(3,)", offsets);
    CHECK(problem_from({"--cu-seqlens-q", good, "--cu-seqlens-kv", good}).cu_seqlens_q ==
          std::vector<Index>{0, 3, 10});
    for (const auto& [descr, shape] : {std::pair{"<f4", "(3,)"}, {"<i4", "(3, 1)"}}) {
      const std::string bad = file(descr, shape, offsets);
      CHECK(contains(problem_rejection({"--cu-seqlens-q", bad, "--cu-seqlens-kv", "0,3,10"}),
                     "must be a .npy of integers with one axis"));
    }
    const std::string empty = file("<i4", "(0,)", "");
    CHECK(contains(problem_rejection({"--cu-seqlens-q", empty, "--cu-seqlens-kv", "0"}),
                   "must be at least one offset"));
  }

  TEST_CASE("a block mask is a file of cells") {
    const testing::TemporaryFolder folder("mask");
    const std::string path = folder.file("mask.npy");
    testing::write_file(path, testing::npy_bytes(testing::npy_dictionary("|b1", "(2, 2)"),
                                                 std::string("\1\0\1\1", 4)));
    const Problem p = problem_from(with_length({"--block-mask", path}));
    REQUIRE(p.block_mask);
    CHECK(*p.block_mask == BlockMask{64, 64, 2, 2, {1, 0, 1, 1}});
    CHECK(
        problem_from(with_length({"--block-mask", path, "--block-q", "16", "--block-mask-q", "64"}))
            .block_mask->block_q == 64);
    CHECK(problem_rejection(with_length({"--block-mask", path, "--block-mask-kv", "32"})) !=
          "accepted");  // too few cells
    CHECK(problem_rejection(with_length({"--block-mask-q", "64"})) ==
          "block-mask-q: needs --block-mask");
    CHECK_THROWS_AS(problem_from(with_length({"--block-mask", folder.file("absent.npy")})),
                    IoError);
  }

  TEST_CASE("score modifiers are numbers and lists of the heads") {
    CHECK(!problem_from(with_length({})).softmax_scale);
    CHECK(problem_from(with_length({"--softmax-scale", "0.25"})).softmax_scale == 0.25);
    CHECK(problem_from(with_length({"--softcap", "30"})).softcap == 30);
    CHECK(problem_rejection(with_length({"--softcap", "-1"})) != "accepted");
    CHECK(problem_rejection(with_length({"--softmax-scale", "inf"})) != "accepted");
    CHECK(problem_from(with_length({"--num-heads", "4", "--alibi"})).alibi_slopes ==
          alibi_slopes(4));
    CHECK(problem_from(with_length({"--num-heads", "3", "--sink", "0.5"})).sink ==
          std::vector<double>{0.5, 0.5, 0.5});
    CHECK(problem_from(with_length({"--num-heads", "2", "--sink", "0.5,-1"})).sink ==
          std::vector<double>{0.5, -1});
    CHECK(problem_rejection(with_length({"--num-heads", "3", "--sink", "1,2"})) != "accepted");
    CHECK(problem_rejection(with_length({"--sink", "1,"})) != "accepted");
  }

  TEST_CASE("absurd head counts are refused before a value a head is made") {
    CHECK(problem_rejection(with_length({"--num-heads", "9000000000000000000", "--alibi"})) !=
          "accepted");
    CHECK(problem_rejection(with_length({"--num-heads", "9000000000000000000", "--sink", "1"})) !=
          "accepted");
    CHECK(problem_rejection(with_length({"--num-heads", "0", "--alibi"})) != "accepted");
  }

  TEST_CASE("options may repeat what the files say and not contradict it") {
    const KnownShape known{2, 8, 4, 16, 32, 64, 48};
    const Problem p = problem_from({}, known);
    CHECK(p.batch == 2);
    CHECK(p.num_heads_q == 8);
    CHECK(p.num_heads_kv == 4);
    CHECK(p.seqlen_q == 16);
    CHECK(p.seqlen_kv == 32);
    CHECK(p.head_dim == 64);
    CHECK(p.head_dim_v == 48);
    CHECK(problem_from({"--batch", "2", "--seqlen-q", "16", "--head-dim-v", "48"}, known) == p);
    for (const char* name : {"batch", "num-heads-q", "num-heads-kv", "seqlen-q", "seqlen-kv",
                             "head-dim", "head-dim-v", "seqlen", "num-heads"}) {
      CAPTURE(std::string(name));
      CHECK(contains(problem_rejection({std::string("--") + name, "3"}, known),
                     std::string(name) + " = 3: must be "));
    }
  }

  TEST_CASE("tiles are judged by core") {
    const auto tile = [](const Words& words) {
      return tile_of(parse_options(*verb_named("count"), words));
    };
    const Tile standard = tile({});
    CHECK(standard.block_q == 64);
    CHECK(standard.block_kv == 64);
    CHECK(standard.panel == 1);
    CHECK(standard.num_splits == 1);
    CHECK(tile({"--block-kv", "32", "--panel", "8"}).panel == 8);
    for (const Words& words : {Words{"--block-q", "0"},
                               {"--block-kv", "-1"},
                               {"--panel", "0"},
                               {"--num-splits", "0"},
                               {"--panel", "7"}}) {
      CAPTURE(words[0]);
      CHECK(rejection([&] { tile(words); }) != "accepted");
    }
  }
}

}  // namespace
}  // namespace flashbound
