// The flashbound command as a function, so that tests and the fuzzer can call it.
#pragma once

#include "experiments/atomic_file.hpp"
#include "experiments/manifest.hpp"
#include "experiments/options.hpp"
#include "experiments/results.hpp"

#include <csignal>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace flashbound {

// Set by SIGINT: long work stops at the next step and keeps what is finished.
extern volatile std::sig_atomic_t interrupted;

// Runs the words after the program's name and returns the exit code.
int run_command(std::span<const std::string> words, std::ostream& out, std::ostream& err);

// What a verb returns: its rows, its exit code, and how many threads it used.
struct Outcome {
  Document document;
  std::vector<std::unique_ptr<AtomicFile>> files;  // written, committed with the results
  int exit_code = 0;
  Index threads = 1;
};

// The verbs. Each throws ConfigError (exit code 2) or IoError (3).
Outcome run_count(const Options& options);
Outcome run_verify_verb(const Options& options);
Outcome run_attend(const Options& options);
Outcome run_list(const Options& options);

// --threads, 0 meaning all that the machine has.
Index threads_of(const Options& options);

}  // namespace flashbound
