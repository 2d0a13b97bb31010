// Control-C ends long work between two of its parts.
#pragma once

#include "core/parallel_for.hpp"

#include <exception>

namespace flashbound {

// Thrown where work was given up; exit code 130.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// The same, but every part first looks whether SIGINT has come and then throws Interrupted.
ParallelFor interruptible(ParallelFor parallel_for);

}  // namespace flashbound
