#include "experiments/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace flashbound {
namespace {

bool can_redraw() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::string what, Index total, ProgressWish wish)
    : what_(std::move(what)), total_(total), shown_(wish == ProgressWish::shown && can_redraw()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::step() {
  using std::chrono::steady_clock;
  const std::lock_guard lock(mutex_);
  ++done_;
  const auto now = steady_clock::now();
  constexpr auto kRedrawEvery = std::chrono::milliseconds(100);
  if (!shown_ || now - drawn_ < kRedrawEvery) return;
  drawn_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed * static_cast<double>(std::max<Index>(total_ - done_, 0)) /
                      static_cast<double>(done_);
  std::fputs(fmt::format("\r\x1b[K{}: {}/{}, {:.0f} s, about {:.0f} s left", what_, done_, total_,
                         elapsed, left)
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

}  // namespace flashbound
