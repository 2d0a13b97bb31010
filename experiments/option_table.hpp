// Every option of the command, once: the parser, --help, the man page and the configuration file
// are all made from this table.
#pragma once

#include <span>
#include <string_view>

namespace flashbound {

// Verbs as bits, so that an option can say which of them take it.
inline constexpr unsigned kVerify = 1;
inline constexpr unsigned kCount = 2;
inline constexpr unsigned kAttend = 4;
inline constexpr unsigned kList = 8;
inline constexpr unsigned kNumerics = 16;
inline constexpr unsigned kCurve = 32;
inline constexpr unsigned kEnvelope = 64;
inline constexpr unsigned kTile = 128;
inline constexpr unsigned kSweep = 256;
inline constexpr unsigned kMerge = 512;

struct VerbText {
  unsigned verb;
  std::string_view name;
  std::string_view purpose;   // one sentence
  std::string_view usage;     // after "flashbound "
  std::string_view examples;  // two, one a line
};
std::span<const VerbText> verb_texts();
// nullptr when there is no such verb.
const VerbText* verb_named(std::string_view name);

// A name may have several entries for different verbs, with defaults of their own.
struct OptionText {
  std::string_view name;      // without dashes
  std::string_view metavar;   // empty: a flag
  std::string_view fallback;  // its default, as it would be written; empty: none
  std::string_view doc;       // unit, range, meaning
  unsigned verbs;
  std::string_view group;
  unsigned swept = 0;  // by verbs that take several values, see sweep.hpp
};
std::span<const OptionText> option_texts();

struct ExitCode {
  int code;
  std::string_view meaning;
};
std::span<const ExitCode> exit_codes();

}  // namespace flashbound
