#include "experiments/command.hpp"

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

namespace {

void on_interrupt(int signal) {
  flashbound::interrupted = 1;
  std::signal(signal, SIG_DFL);  // a second one ends at once
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write that fails, with its message
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file beyond its limit
  const std::vector<std::string> words(argv + 1, argv + argc);
  return flashbound::run_command(words, std::cout, std::cerr);
}
