#include "experiments/command.hpp"

#include "core/errors.hpp"
#include "core/int128.hpp"
#include "experiments/atomic_file.hpp"
#include "experiments/build_info.hpp"
#include "experiments/help.hpp"
#include "experiments/html.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/io_error.hpp"
#include "experiments/output_paths.hpp"
#include "experiments/parallel_for.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <ostream>
#include <utility>

namespace flashbound {

std::atomic<bool> interrupted = false;

namespace {

[[noreturn]] void reject_verb(const std::string& word) {
  std::string names;
  std::vector<std::string> candidates;
  for (const VerbText& verb : verb_texts()) {
    names += (names.empty() ? "" : ", ") + std::string(verb.name);
    candidates.emplace_back(verb.name);
  }
  const auto meant = nearest(word, candidates);
  throw ConfigError("unknown verb '" + word + "': must be one of " + names +
                    (meant ? " (did you mean " + *meant + "?)" : ""));
}

Outcome dispatch(const Options& options) {
  switch (options.verb().verb) {
    case kVerify: return run_verify_verb(options);
    case kCount: return run_count(options);
    case kAttend: return run_attend(options);
    case kNumerics: return run_numerics(options);
    case kList: return run_list(options);
    case kTile: return run_tile(options);
    case kEnvelope: return run_envelope(options);
    case kCurve: return run_curve(options);
    case kSweep: return run_sweep(options);
    case kMerge: return run_merge(options);
  }
  throw ConfigError("unknown verb");
}

void flush(std::ostream& out, const char* where) {
  if (out) errno = 0;  // else it says why a write failed
  out.flush();
  if (out) return;
  throw IoError(std::string("cannot write ") + where + ": " +
                (errno != 0 ? std::strerror(errno) : "write failed"));
}

int run_verb(const VerbText& verb, std::span<const std::string> words, std::ostream& out) {
  const Options options = parse_options(verb, words.subspan(1));
  if (options.flag("print-config")) {
    out << print_config(options);
    flush(out, "standard output");
    return 0;
  }
  const Format format = format_named(options.text("format"));
  const std::string path = options.text("output");
  const Overwrite overwrite = options.flag("force") ? Overwrite::yes : Overwrite::no;
  // Opened before the work: an unwritable place must not cost it.
  require_distinct_paths(options);
  // A sweep appends to its file and a merge streams into it; both rename or lock it themselves.
  const bool own_file = (verb.verb & (kSweep | kMerge)) != 0;
  const bool to_file = path != "-" && !own_file;
  std::unique_ptr<AtomicFile> file;
  std::unique_ptr<AtomicFile> manifest_file;
  if (to_file) file = std::make_unique<AtomicFile>(path, overwrite);
  if (to_file && format != Format::json && !file->in_place()) {
    manifest_file = std::make_unique<AtomicFile>(path + ".manifest.json", overwrite);
  }
  std::unique_ptr<AtomicFile> report;
  if (options.given("report")) {
    report = std::make_unique<AtomicFile>(options.text("report"), overwrite);
  }

  RunFacts run;
  run.argv.assign(words.begin(), words.end());
  run.started_utc = utc_now();
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome = dispatch(options);
  run.duration_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.threads = outcome.threads;
  const std::string manifest = manifest_json(options, run);
  // Not before: a sweep that is killed leaves its own file and nothing else.
  if (own_file && path != "-") {
    manifest_file = std::make_unique<AtomicFile>(path + ".manifest.json", Overwrite::yes);
  }
  if (file) write(file->stream(), outcome.document, format, manifest);
  if (manifest_file) manifest_file->stream() << manifest << "\n";
  if (report) {
    write_html(report->stream(), "flashbound " + std::string(verb.name), outcome.document,
               manifest);
  }
  std::vector<std::unique_ptr<AtomicFile>>& files = outcome.files;
  for (std::unique_ptr<AtomicFile>* one : {&manifest_file, &report, &file}) {
    if (*one) files.push_back(std::move(*one));
  }
  for (const auto& one : files) one->finish();
  if (!to_file && !outcome.written_elsewhere) {
    write(out, outcome.document, format, manifest);
    flush(out, "standard output");
  }
  for (const auto& one : files) one->commit();
  return outcome.exit_code;
}

int dispatch_words(std::span<const std::string> words, std::ostream& out) {
  if (words.empty()) throw ConfigError("a verb is missing: see flashbound --help");
  const std::string& first = words.front();
  if (first == "--help" || first == "-h" || first == "help") {
    out << command_help();
  } else if (first == "--help-all") {
    out << full_help();
  } else if (first == "--version" || first == "-V") {
    out << "flashbound " << build_info().version << " (" << build_info().git_hash
        << (build_info().git_dirty ? ", modified" : "") << ")\n";
  } else if (first == "--man") {
    out << man_page();
  } else {
    const VerbText* verb = verb_named(first);
    if (verb == nullptr) reject_verb(first);
    const bool help = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word == "--help" || word == "-h";
    });
    if (!help) return run_verb(*verb, words, out);
    out << verb_help(*verb);
  }
  flush(out, "standard output");
  return 0;
}

// Whatever a message quotes, it stays one line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return text;
}

}  // namespace

Index threads_of(const Options& options) {
  constexpr Index kThreadsMax = 1024;
  const Index threads = options.integer("threads", 0, kThreadsMax);
  return threads == 0 ? hardware_threads() : threads;
}

int run_command(std::span<const std::string> words, std::ostream& out, std::ostream& err) {
  const auto fail = [&](const std::string& message, int code) {
    err << "flashbound: error: " << one_line(message) << std::endl;
    return code;
  };
  try {
    return dispatch_words(words, out);
  } catch (const ConfigError& error) {
    return fail(error.what(), kUsage);
  } catch (const Interrupted& error) {
    return fail(error.what(), kInterrupted);
  } catch (const CountOverflow& error) {
    return fail(error.what(), kUsage);
  } catch (const IoError& error) {
    return fail(error.what(), kEnvironment);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kEnvironment);
  } catch (const std::length_error&) {
    return fail("out of memory", kEnvironment);
  } catch (const std::system_error& error) {
    return fail(error.what(), kEnvironment);  // no more threads, say
  }
}

}  // namespace flashbound
