// Which tiles fit which operation.
#pragma once

#include "core/program.hpp"

#include <string>

namespace flashbound {

// Whether a computation (an operation that is no kernel, loop, load, store, allocate or release)
// takes operand a, and whether it takes b.
enum class Takes { nothing, perhaps, always };
Takes takes_a(Op op);
Takes takes_b(Op op);

// Why the operands do not fit each other ("the shape of tile 'q' does not fit the others"); empty
// when they do. a and b are nullptr where absent.
std::string misfit(Op op, const TileDecl& result, const TileDecl* a, const TileDecl* b);

}  // namespace flashbound
