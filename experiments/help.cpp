#include "experiments/help.hpp"

#include "experiments/build_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace flashbound {
namespace {

std::string option_word(const OptionText& option, const VerbText& verb) {
  std::string word = "--" + std::string(option.name);
  if (!option.metavar.empty()) word += " " + std::string(option.metavar);
  if ((option.swept & verb.verb) != 0) word += ",...";
  return word;
}

// What the dots mean, where a verb has them.
std::string sweep_note(const VerbText& verb) {
  const bool sweeps =
      std::any_of(option_texts().begin(), option_texts().end(),
                  [&](const OptionText& option) { return (option.swept & verb.verb) != 0; });
  if (!sweeps) return "";
  return "A list (64,128), for whole numbers also a range (128:8192:x2), gives a row a "
         "combination.";
}

std::string option_doc(const OptionText& option) {
  std::string doc(option.doc);
  if (!option.fallback.empty()) doc += fmt::format(" [{}]", option.fallback);
  return doc;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string exit_code_lines() {
  constexpr std::size_t kWidth = 100;
  const std::string indent = "            ";
  std::string text;
  std::string line = "Exit codes:";
  for (const ExitCode& code : exit_codes()) {
    const std::string entry =
        fmt::format(" {} {}{}", code.code, code.meaning, &code == &exit_codes().back() ? "." : ",");
    if (line.size() + entry.size() > kWidth) {
      text += line + "\n";
      line = indent.substr(1);
    }
    line += entry;
  }
  return text + line + "\n";
}

// A leading dot or a dash would mean something to roff.
std::string roff(std::string_view text) {
  std::string escaped = text.find_first_of(".'") == 0 ? "\\&" : "";
  for (const char c : text) {
    if (c == '-') {
      escaped += "\\-";
    } else if (c == '\\') {
      escaped += "\\e";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string command_help() {
  std::string text =
      "flashbound: how much data attention must move, cross-checked by independent parts\n\n"
      "usage: flashbound VERB [options]\n\n";
  for (const VerbText& verb : verb_texts()) {
    text += fmt::format("  {:<8} {}\n", verb.name, verb.purpose);
  }
  text +=
      "\nflashbound VERB --help says more; --help-all, --version, --man (roff) stand alone.\n"
      "Results go to standard output, everything else to standard error.\n" +
      exit_code_lines();
  return text;
}

std::string verb_help(const VerbText& verb) {
  std::string text = fmt::format("{}\n\nusage: flashbound {}\n", verb.purpose, verb.usage);
  const std::string note = sweep_note(verb);
  if (!note.empty()) text += note + "\n";
  std::string_view group;
  for (const OptionText& option : option_texts()) {
    if ((option.verbs & verb.verb) == 0) continue;
    if (option.group != group) {
      group = option.group;
      text += fmt::format("\n{}:\n", group);
    }
    text += fmt::format("  {:<22} {}\n", option_word(option, verb), option_doc(option));
  }
  text += "\nExamples:\n";
  for (const std::string& line : lines_of(verb.examples)) text += "  " + line + "\n";
  return text + exit_code_lines();
}

std::string full_help() {
  std::string text = command_help();
  for (const VerbText& verb : verb_texts()) {
    text += fmt::format("\n{}\n{}", verb.name, verb_help(verb));
  }
  return text;
}

std::string man_page() {
  std::string text = fmt::format(
      ".TH FLASHBOUND 1 \"\" \"flashbound {}\" \"User Commands\"\n"
      ".SH NAME\nflashbound \\- how much data attention must move, cross\\-checked\n"
      ".SH SYNOPSIS\n.B flashbound\n.I VERB\n[options]\n"
      ".SH DESCRIPTION\n"
      "Counts what an attention algorithm moves between HBM and a fast memory, runs it tile by\n"
      "tile, and compares every figure with a second way to obtain it.\n",
      build_info().version);
  for (const VerbText& verb : verb_texts()) {
    text += fmt::format(".SH {}\n{}\n.PP\n.B flashbound {}\n", verb.name, roff(verb.purpose),
                        roff(verb.usage));
    const std::string note = sweep_note(verb);
    if (!note.empty()) text += ".PP\n" + roff(note) + "\n";
    for (const OptionText& option : option_texts()) {
      if ((option.verbs & verb.verb) == 0) continue;
      text += fmt::format(".TP\n.B {}\n{}\n", roff(option_word(option, verb)),
                          roff(option_doc(option)));
    }
    text += ".PP\nExamples:\n.nf\n";
    for (const std::string& line : lines_of(verb.examples)) text += roff(line) + "\n";
    text += ".fi\n";
  }
  text += ".SH EXIT STATUS\n";
  for (const ExitCode& code : exit_codes()) {
    text += fmt::format(".TP\n.B {}\n{}\n", code.code, roff(code.meaning));
  }
  return text;
}

}  // namespace flashbound
