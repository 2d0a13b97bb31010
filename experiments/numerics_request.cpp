#include "experiments/numerics_request.hpp"

#include "core/errors.hpp"
#include "experiments/distributions.hpp"
#include "experiments/problem_options.hpp"
#include "experiments/sweep.hpp"
#include "experiments/text_file.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>

namespace flashbound {
namespace {

// What fits into a machine's memory three times over, and what an answer can be waited for.
constexpr Index kTensorElementsMax = Index{1} << 28;

using Recipes = std::map<std::string, std::shared_ptr<const RequestedRecipe>>;

bool is_file(const std::string& recipe) { return recipe.ends_with(".json"); }

RequestedRecipe read_recipe(const std::string& text) {
  if (!is_file(text)) return {recipe_named(text), false};
  const std::string json = read_text_file("recipe", text);
  try {
    return {recipe_from_json(json), true};
  } catch (const ConfigError& error) {
    throw ConfigError(text + ": " + error.what());
  }
}

std::shared_ptr<const RequestedRecipe> recipe_of(const Options& point, Recipes& known) {
  const std::string text = point.text("recipe");
  std::shared_ptr<const RequestedRecipe>& recipe = known[text];
  if (!recipe) recipe = std::make_shared<const RequestedRecipe>(read_recipe(text));
  return recipe;
}

std::string distribution_of(const Options& point) {
  std::string text = point.text("distribution");
  std::string names;
  for (const DistributionFacts& entry : distributions()) {
    if (entry.name == text) return text;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  reject("distribution", text, "one of " + names);
}

void require_size(const Problem& p) {
  const Index head_dim = std::max(p.head_dim, p.head_dim_v);
  const Index heads = std::max(p.num_heads_q, p.num_heads_kv);
  const Index seqlen = std::max(p.seqlen_q, p.seqlen_kv);
  const Int128 elements = Int128{p.batch} * heads * seqlen * head_dim;
  if (elements <= kTensorElementsMax) return;
  reject("seqlen", std::to_string(seqlen),
         "small enough for tensors of at most " + std::to_string(kTensorElementsMax) +
             " elements, this one has " + to_decimal(elements));
}

// "all" as the list that it stands for.
Options with_algorithms_listed(Options options) {
  if (options.text("algorithm") != "all") return options;
  std::string names;
  for (const Algorithm& algorithm : algorithms(Pass::forward)) {
    names += (names.empty() ? "" : ",") + std::string(algorithm.name);
  }
  options.set("algorithm", {names, options.values().at("algorithm").origin});
  return options;
}

std::optional<NpyInputs> files_of(const Options& options) {
  const std::array<const char*, 3> names{"q", "k", "v"};
  const bool given = std::any_of(names.begin(), names.end(),
                                 [&](const char* name) { return options.given(name); });
  if (!given) return std::nullopt;
  if (options.given("distribution")) {
    throw ConfigError("distribution: is given beside q, k and v: must be one or the other");
  }
  return read_npy_inputs(options);
}

NumericsPoint point_of(const Options& options, const std::optional<KnownShape>& known,
                       Recipes& recipes) {
  NumericsPoint point;
  point.problem = problem_of(options, known, Emptiness::rejected);
  require_size(point.problem);
  point.tile = tile_of(options);
  point.algorithm = &algorithm_named(options.text("algorithm"));
  if (point.algorithm->pass == Pass::backward) {
    reject("algorithm", options.text("algorithm"),
           "a forward algorithm: gradients are not measured");
  }
  point.recipe = recipe_of(options, recipes);
  if (!known) point.distribution = distribution_of(options);
  point.seed =
      static_cast<std::uint64_t>(options.integer("seed", 0, std::numeric_limits<Index>::max()));
  return point;
}

}  // namespace

NumericsRequest numerics_request(const Options& options) {
  NumericsRequest request;
  const std::string reference = options.text("reference");
  if (reference == "fp64") {
    request.reference = ReferenceKind::fp64;
  } else if (reference != "exact") {
    reject("reference", reference, "exact or fp64");
  }
  const std::string inputs = options.text("reference-inputs");
  if (inputs == "unrounded") {
    request.reference_inputs = ReferenceInputs::unrounded;
  } else if (inputs != "rounded") {
    reject("reference-inputs", inputs, "rounded or unrounded");
  }
  request.files = files_of(options);
  std::optional<KnownShape> known;
  if (request.files) known = shape_of(request.files->inputs);
  Recipes recipes;
  for (const Options& point : sweep_points(with_algorithms_listed(options))) {
    request.points.push_back(point_of(point, known, recipes));
  }
  return request;
}

std::vector<const NumericClaim*> requested_claims(const Options& options) {
  std::vector<const NumericClaim*> claims;
  if (!options.given("claim")) return claims;
  constexpr std::array<std::string_view, 9> kTaken{
      "claim", "threads", "format", "output", "report", "force", "config", "print-config", "quiet"};
  for (const auto& [name, value] : options.values()) {
    if (value.chosen && std::find(kTaken.begin(), kTaken.end(), name) == kTaken.end()) {
      throw ConfigError(name + ": is given beside claim: a claim has settings of its own");
    }
  }
  const std::string text = options.text("claim");
  if (text == "all") {
    for (const NumericClaim& claim : numeric_claims()) claims.push_back(&claim);
    return claims;
  }
  for (const std::string& id : split_commas(text)) claims.push_back(&numeric_claim(id));
  return claims;
}

}  // namespace flashbound
