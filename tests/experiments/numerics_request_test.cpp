// What a call of numerics asks for, and what it is refused.
#include "experiments/numerics_request.hpp"

#include "experiments/io_error.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/experiments/rejection.hpp"
#include "tests/experiments/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

namespace flashbound {
namespace {

using testing::contains;
using testing::rejection;
using testing::TemporaryFolder;
using Words = std::vector<std::string>;

Options options_of(const Words& words) { return parse_options(*verb_named("numerics"), words); }
NumericsRequest request_of(const Words& words) { return numerics_request(options_of(words)); }
std::string refusal(const Words& words) {
  return rejection([&] { request_of(words); });
}

// q.npy, k.npy, v.npy of a small problem, and the words that name them.
Words save_inputs(const TemporaryFolder& folder) {
  Problem problem;
  problem.seqlen_q = 5;
  problem.seqlen_kv = 7;
  problem.head_dim = problem.head_dim_v = 4;
  const OwnedInputs inputs = normal_inputs(problem, 1);
  Words words;
  const auto save = [&](const std::string& name, const Tensor<double>& tensor) {
    std::ofstream out(folder.file(name + ".npy"), std::ios::binary);
    write_npy(out, tensor, NpyType::f8);
    words.insert(words.end(), {"--" + name, folder.file(name + ".npy")});
  };
  save("q", inputs.q);
  save("k", inputs.k);
  save("v", inputs.v);
  return words;
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_SUITE("experiments.numerics_request") {
  TEST_CASE("defaults are flash2 in its bf16 recipe on normal inputs against the exact answer") {
    const NumericsRequest request = request_of({"--seqlen", "8"});
    REQUIRE(request.points.size() == 1);
    const NumericsPoint& point = request.points.front();
    CHECK(std::string(point.algorithm->name) == "flash2");
    CHECK(point.recipe->recipe == recipe_named("flash2-bf16"));
    CHECK(!point.recipe->from_file);
    CHECK(point.distribution == "normal");
    CHECK(point.seed == 1);
    CHECK(point.problem.seqlen_kv == 8);
    CHECK(request.reference == ReferenceKind::exact);
    CHECK(request.reference_inputs == ReferenceInputs::rounded);
    CHECK(!request.files);
  }

  TEST_CASE("points are the product of everything that is swept") {
    const NumericsRequest request =
        request_of({"--seqlen", "8", "--algorithm", "flash1,flash2", "--recipe", "fp32,all-m4e5",
                    "--distribution", "normal,constant", "--seed", "1,2,3", "--num-splits", "1,2"});
    REQUIRE(request.points.size() == 2 * 2 * 2 * 3 * 2);
    CHECK(request.points[0].tile.num_splits == 1);
    CHECK(request.points[1].tile.num_splits == 2);
    CHECK(std::string(request.points[2].algorithm->name) == "flash2");
    CHECK(request.points[4].recipe->recipe.name == "all-m4e5");
    CHECK(request.points[8].seed == 2);
    CHECK(request.points[24].distribution == "constant");
  }

  TEST_CASE("all algorithms are the list of forward ones and no backward one is taken") {
    const NumericsRequest request =
        request_of({"--seqlen", "8", "--algorithm", "all", "--block-q", "2,4"});
    REQUIRE(request.points.size() == 2 * algorithms(Pass::forward).size());
    CHECK(request.points[1].algorithm == request.points[0].algorithm);
    CHECK(request.points[2].algorithm == &algorithms()[1]);
    CHECK_THROWS_AS(request_of({"--seqlen", "8", "--algorithm", "flash2-backward"}), ConfigError);
  }

  TEST_CASE("a recipe may be a file") {
    const TemporaryFolder folder("recipes");
    const std::string path = folder.file("mine.json");
    testing::write_file(path, R"({"base": "fp32", "name": "mine", "stored": "bf16",
      "scores_product": {"order": "sequential"}, "values_product": {"order": "sequential"},
      "row_sum": "sequential"})");
    const NumericsRequest request = request_of({"--seqlen", "8", "--recipe", "fp64," + path});
    REQUIRE(request.points.size() == 2);
    CHECK(request.points[1].recipe->recipe.name == "mine");
    CHECK(request.points[1].recipe->from_file);
    CHECK(request.points[1].recipe->recipe.stored == float_format(NumberFormat::bf16));
    testing::write_file(path, "{\"name\": \"mine\", \"scores\": \"fp7\"}");
    CHECK(contains(refusal({"--seqlen", "8", "--recipe", path}), path + ": recipe scores = fp7"));
    testing::write_file(path, "{");
    CHECK(contains(refusal({"--seqlen", "8", "--recipe", path}), "JSON"));
    CHECK_THROWS_AS(request_of({"--seqlen", "8", "--recipe", folder.file("no.json")}), IoError);
  }

  TEST_CASE("files decide the problem and exclude a distribution") {
    const TemporaryFolder folder("numerics");
    const Words files = save_inputs(folder);
    const NumericsRequest request = request_of(with(files, {"--seed", "3,4"}));
    REQUIRE(request.points.size() == 2);
    CHECK(request.files);
    CHECK(request.points[0].problem.seqlen_kv == 7);
    CHECK(request.points[0].distribution.empty());
    CHECK(contains(refusal(with(files, {"--seqlen-q", "6"})), "seqlen-q = 6: must be 5"));
    CHECK(contains(refusal(with(files, {"--seqlen-q", "5,6"})), "seqlen-q = 6: must be 5"));
    CHECK(contains(refusal(with(files, {"--distribution", "normal"})), "distribution"));
    CHECK(contains(refusal({files[0], files[1]}), "k: is required"));
  }

  TEST_CASE("a bad value anywhere in a sweep is refused before anything runs") {
    const auto after = [](const Words& words) { return refusal(with({"--seqlen", "8"}, words)); };
    CHECK(contains(after({"--recipe", "fp32,fp31"}), "recipe = fp31: must be"));
    CHECK(contains(after({"--recipe", "all-fp31"}), "recipe"));
    CHECK(contains(after({"--algorithm", "flash2,flash9"}), "algorithm = flash9: must be one of"));
    CHECK(contains(after({"--algorithm", "flash2,all"}), "algorithm = all: must be one of"));
    CHECK(contains(after({"--distribution", "normal,"}), "distribution"));
    CHECK(contains(after({"--seed", "1,-1"}), "seed = -1"));
    CHECK(contains(after({"--block-q", "64,0"}), "block_q = 0"));
    CHECK(contains(after({"--reference", "fp32"}), "reference = fp32: must be exact or fp64"));
    CHECK(contains(after({"--reference-inputs", "x"}), "reference-inputs = x: must be rounded"));
    CHECK(contains(refusal({"--seqlen", "4294967296"}), "268435456 elements"));
    CHECK(contains(refusal({}), "seqlen"));
  }

  TEST_CASE("a claim excludes what would be another claim") {
    CHECK(requested_claims(options_of({"--seqlen", "8"})).empty());
    CHECK(requested_claims(options_of({"--claim", "all", "--threads", "2", "--quiet"})).size() ==
          numeric_claims().size());
    const auto refused = [](const Words& words) {
      return rejection([&] { requested_claims(options_of(words)); });
    };
    CHECK(contains(refused({"--claim", "all", "--seqlen", "8"}), "seqlen: is given beside claim"));
    CHECK(contains(refused({"--claim", "all", "--recipe", "fp32"}), "recipe"));
    CHECK(contains(refused({"--claim", "NO-1"}), "claim = NO-1: must be one of"));
    CHECK(contains(refused({"--claim", ""}), "claim = ''"));
  }
}

}  // namespace
}  // namespace flashbound
