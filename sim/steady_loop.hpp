// The steady state of a program: a last loop whose iterations all look alike to an LRU cache, so
// that its second one may stand for all that follow.
//
// Take the outermost loop that makes the program's last moves, with blocks 0 ... m - 1 of one size
// and perhaps a ragged last one. Suppose that
//   1. the blocks of the loops in its body are the same in every iteration, and
//   2. each tensor is *fresh*, moved nowhere else and always with this loop's block along the same
//      axes of it and along no other; or *stationary*, moved in the body by regions without this
//      loop's block; or not moved in the body at all; and
//   3. a tensor that other heads share is moved in the body only, and is stationary there.
// Then iterations 0 ... m - 1 make the same moves but for the fresh tiles, which differ in their
// number, not in their lines. Let an access of iteration n >= 1 touch tile u. If u is fresh its
// last access is in iteration n, or it has none. If u is stationary its last access is in
// iteration n or n - 1, since every iteration touches it. So what lies between lies in iterations
// n - 1 and n, and renaming the fresh tiles of n to those of 1 and of n - 1 to those of 0 maps it
// to the window before the same access of iteration 1, line for line: iterations 1 ... m - 1 have
// the same distances. By the same renaming, moves after them (of the ragged block, of other heads,
// which by 3 share with this head only what each iteration touches) see iteration 1 as they would
// see m - 1. Hence iterations 0, 1 and the ragged one tell all, with iteration 1 taken m - 1 times.
//
// Write-backs: a write that follows another write of its line is counted with the later one. Both
// lie in iterations n - 1 and n again, and so do the accesses between them, whose largest distance
// says when the first is written back: the rewrites of iteration 1 stand for those of 1 ... m - 1.
// The last content of a line is counted with its *first* write: of a fresh tile that is in
// iteration 1, once for each block; of a stationary one it is in iteration 0 or before, once.
//
// None of this holds for OPT, whose choices look ahead.
#pragma once

#include "sim/moves.hpp"

#include <optional>
#include <vector>

namespace flashbound {

struct SteadyLoop {
  std::size_t node = 0;  // index in the program's moves; whatever follows moves nothing
  Interval blocks{};     // of the loop, all of them
  Index times = 0;       // m - 1, at least 2
  bool ragged = false;   // whether the last of `blocks` is smaller than the others
};

// `shared` says of each tensor whether several query heads read the same one. nullopt where the
// conditions above are not seen to hold: they are checked on the loops' ranges and the moves'
// extents, so that a mask that leaves holes never passes.
std::optional<SteadyLoop> steady_loop(const Program& program, const std::vector<MoveNode>& moves,
                                      const Schedule& schedule, const std::vector<bool>& shared);

}  // namespace flashbound
