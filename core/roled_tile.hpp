// A tile of a numeric run and what the program says of it.
#pragma once

#include "core/numeric_operations.hpp"
#include "core/program.hpp"

namespace flashbound {

template <class T>
struct RoledTile {
  numeric::Matrix<T>& values;
  TileRole role = TileRole::operand;
};

// What a row sum adds up: weights of scores, which a recipe may give an offset, or the weights by
// which normalised parts are merged, which have none.
enum class SumOf { weights, parts };

}  // namespace flashbound
