// One line on a terminal that says how far long work has come.
#pragma once

#include "core/int128.hpp"

#include <chrono>
#include <mutex>
#include <string>

namespace flashbound {

enum class ProgressWish { shown, quiet };

// Draws on standard error, only where that is a terminal that can redraw a line (not TERM=dumb) and
// the user did not ask for quiet. Plain text without colour, so that NO_COLOR needs nothing.
class Progress {
 public:
  Progress(std::string what, Index total, ProgressWish wish);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;

  // One more step is done. Any thread may call it.
  void step();

 private:
  std::string what_;
  Index total_;
  bool shown_;
  std::mutex mutex_;
  Index done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_{};
};

}  // namespace flashbound
