// The flashbound command as a function, so that tests and the fuzzer can call it.
#pragma once

#include "experiments/atomic_file.hpp"
#include "experiments/manifest.hpp"
#include "experiments/options.hpp"
#include "experiments/results.hpp"

#include <atomic>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace flashbound {

// Exit codes other than 0; exit_codes() of option_table.hpp says what they mean.
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kEnvironment = 3;
inline constexpr int kInterrupted = 130;

// Set by SIGINT and its like: long work stops at the next step and keeps what is finished.
extern std::atomic<bool> interrupted;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

// Runs the words after the program's name and returns the exit code.
int run_command(std::span<const std::string> words, std::ostream& out, std::ostream& err);

// What a verb returns: its rows, its exit code, and how many threads it used.
struct Outcome {
  Document document;
  std::vector<std::unique_ptr<AtomicFile>> files;  // written, committed with the results
  int exit_code = 0;
  Index threads = 1;
  bool written_elsewhere = false;  // the verb has written its rows itself: none are printed
};

// The verbs. Each throws ConfigError (exit code 2) or IoError (3).
Outcome run_count(const Options& options);
Outcome run_verify_verb(const Options& options);
Outcome run_attend(const Options& options);
Outcome run_numerics(const Options& options);
Outcome run_list(const Options& options);
Outcome run_tile(const Options& options);
Outcome run_envelope(const Options& options);
Outcome run_curve(const Options& options);
Outcome run_sweep(const Options& options);
Outcome run_merge(const Options& options);

// The rows of one call of count and of tile, for their verbs and for sweep. append_counts says
// whether all methods agreed.
Document count_document();
bool append_counts(const Options& options, Document& document);
void append_tiles(const Options& options, Document& document);

// --threads, 0 meaning all that the machine has.
Index threads_of(const Options& options);

}  // namespace flashbound
