// Threads for core, which starts none of its own.
#pragma once

#include "core/parallel_for.hpp"

namespace flashbound {

// Runs parts on `threads` threads (1 or more), the caller's among them. Each idle thread takes the
// next part. The first exception of a part is thrown to the caller once all threads have stopped;
// parts that had not begun by then are left out.
ParallelFor threaded(Index threads);

// How many threads the machine runs at once, at least 1.
Index hardware_threads();

}  // namespace flashbound
