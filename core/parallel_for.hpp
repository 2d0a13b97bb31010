// How core is lent threads: it starts none, so long work takes a function that runs its parts.
#pragma once

#include "core/int128.hpp"

#include <functional>

namespace flashbound {

// Calls body(0) ... body(count - 1), each once, in any order and on any threads, and returns when
// all have returned. Parts write to places of their own, so that results depend on no order.
using ParallelFor = std::function<void(Index count, const std::function<void(Index)>& body)>;

// All parts in order on the caller's thread.
inline void serial(Index count, const std::function<void(Index)>& body) {
  for (Index part = 0; part < count; ++part) body(part);
}

}  // namespace flashbound
