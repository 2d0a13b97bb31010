#include "experiments/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace flashbound {
namespace {

void run_parts(Index threads, Index count, const std::function<void(Index)>& body) {
  std::atomic<Index> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr first_error;
  std::mutex error_mutex;
  const auto work = [&] {
    while (!failed) {
      const Index part = next.fetch_add(1);
      if (part >= count) return;
      try {
        body(part);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!first_error) first_error = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (Index t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(work);
  work();
  helpers.clear();  // joins
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace

ParallelFor threaded(Index threads) {
  return [threads](Index count, const std::function<void(Index)>& body) {
    run_parts(threads, count, body);
  };
}

Index hardware_threads() {
  return std::max<Index>(1, static_cast<Index>(std::thread::hardware_concurrency()));
}

}  // namespace flashbound
