// What a call of numerics asks for.
#pragma once

#include "core/problem.hpp"
#include "core/programs.hpp"
#include "core/recipe.hpp"
#include "experiments/npy_inputs.hpp"
#include "experiments/numerics/claim.hpp"
#include "experiments/numerics/reference_outputs.hpp"
#include "experiments/options.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace flashbound {

struct RequestedRecipe {
  Recipe recipe;
  bool from_file = false;
};

// One row: one value of everything.
struct NumericsPoint {
  Problem problem;
  Tile tile;
  const Algorithm* algorithm = nullptr;
  std::shared_ptr<const RequestedRecipe> recipe;
  std::string distribution;  // empty: inputs come from files
  std::uint64_t seed = 0;
};

struct NumericsRequest {
  std::vector<NumericsPoint> points;
  std::optional<NpyInputs> files;
  ReferenceKind reference = ReferenceKind::exact;
  ReferenceInputs reference_inputs = ReferenceInputs::rounded;
};

// Judges every point before any is run. Throws ConfigError, and IoError for files.
NumericsRequest numerics_request(const Options& options);

// The claims that --claim names; empty where it is not given. Throws ConfigError for ids that are
// none and for options beside it that claims do not take.
std::vector<const NumericClaim*> requested_claims(const Options& options);

}  // namespace flashbound
