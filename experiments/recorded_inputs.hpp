// Real input: Q, K and V of a trained model, stored in experiments/activations/.
#pragma once

#include "experiments/random_inputs.hpp"

#include <string>
#include <vector>

namespace flashbound {

// A problem with its own Q, K and V, of which every head is computed.
struct RecordedInputs {
  std::string name;
  Problem problem;
  Tile tile{};
  OwnedInputs inputs;
};

// The names of what is stored.
std::vector<std::string> recorded_names();

// Reads FOLDER/NAME_{q,k,v}.npy, with '-' in the name as '_' in the file's. Throws ConfigError or
// IoError naming the file.
RecordedInputs read_recorded(const std::string& folder, const std::string& name);

// The folder beside the sources that this command was built from, or installed with it. Throws
// IoError when neither is there.
std::string default_activations();

}  // namespace flashbound
