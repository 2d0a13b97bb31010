#include "experiments/interrupt.hpp"

#include "experiments/command.hpp"

#include <utility>

namespace flashbound {

ParallelFor interruptible(ParallelFor parallel_for) {
  return [parallel_for = std::move(parallel_for)](Index count,
                                                  const std::function<void(Index)>& body) {
    parallel_for(count, [&](Index part) {
      if (interrupted) throw Interrupted();
      body(part);
    });
  };
}

}  // namespace flashbound
