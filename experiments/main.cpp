#include "experiments/command.hpp"

#include <csignal>
#include <fcntl.h>
#include <iostream>
#include <string>
#include <vector>

namespace {

void on_interrupt(int signal) {
  flashbound::interrupted = true;
  std::signal(signal, SIG_DFL);  // a second one ends at once
}

// An output file would get the number of a standard stream that is closed, and with it what is
// meant for that stream. Opened the wrong way round, the stream's use fails as if it were closed.
void occupy_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (fcntl(stream, F_GETFD) == -1) open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  std::ios::sync_with_stdio(false);
  // Whoever asks to stop, unfinished files are removed first. Under nohup nobody can ask.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(signal, on_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write that fails, with its message
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file beyond its limit
  const std::vector<std::string> words(argv + 1, argv + argc);
  return flashbound::run_command(words, std::cout, std::cerr);
}
