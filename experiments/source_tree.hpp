// Where recorded inputs lie.
#pragma once

#include <string>

namespace flashbound {

// The activations beside the sources that this command was built from, or those installed with it.
// Throws IoError when neither is there.
std::string default_activations();

}  // namespace flashbound
