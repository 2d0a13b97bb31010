// The problems that `flashbound verify` checks, besides the recorded activations.
#pragma once

#include "core/problem.hpp"

#include <string>
#include <vector>

namespace flashbound {

struct VerifyProblem {
  std::string name;
  std::string source;  // whose shape this is
  Problem problem;     // counted whole
  Tile tile;
};

// Published model shapes: GPT-2 medium, Llama-2-7B, grouped heads, decoding, latent attention.
std::vector<VerifyProblem> verify_problems();

// One group of heads of one sequence: what a seeded numeric check computes of the problem.
Problem one_group(const Problem& problem);

}  // namespace flashbound
