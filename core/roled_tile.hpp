// A tile of a numeric run and what the program says it is.
#pragma once

#include "core/numeric_operations.hpp"
#include "core/program.hpp"

namespace flashbound {

template <class T>
struct RoledTile {
  numeric::Matrix<T>& values;
  TileRole role = TileRole::operand;
};

}  // namespace flashbound
