// What the tests of exact results share.
#pragma once

#include "core/parallel_for.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

namespace flashbound::testing {

// Equal element by element; two NaN are equal.
inline bool same_numbers(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

inline ParallelFor three_threads() {
  return [](Index count, const std::function<void(Index)>& body) {
    std::vector<std::thread> workers;
    for (Index first = 0; first < 3; ++first) {
      workers.emplace_back([=, &body] {
        for (Index part = first; part < count; part += 3) body(part);
      });
    }
    for (std::thread& worker : workers) worker.join();
  };
}

}  // namespace flashbound::testing
