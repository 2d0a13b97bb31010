#include "experiments/options.hpp"

#include "core/errors.hpp"
#include "experiments/text_file.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <sstream>

namespace flashbound {
namespace {

namespace po = boost::program_options;

bool takes(const VerbText& verb, const OptionText& option) {
  return (option.verbs & verb.verb) != 0;
}

// Aliases that users of other libraries expect.
std::string canonical(const std::string& name) { return name == "seqlen-k" ? "seqlen-kv" : name; }

po::options_description describe(const VerbText& verb, bool in_file) {
  po::options_description description;
  const auto add = [&](const std::string& name, bool flag) {
    // Flags are words of their own on the command line and "true" or "false" in a file.
    if (flag && !in_file) {
      description.add_options()(name.c_str(), po::bool_switch());
    } else {
      description.add_options()(name.c_str(), po::value<std::string>());
    }
  };
  for (const OptionText& option : option_texts()) {
    if (takes(verb, option)) add(std::string(option.name), option.metavar.empty());
    if (option.name == "seqlen-kv" && takes(verb, option)) add("seqlen-k", false);
  }
  return description;
}

[[noreturn]] void reject_unknown(const VerbText& verb, const std::string& word) {
  std::string bare = word;
  bare.erase(0, bare.find_first_not_of('-') == std::string::npos ? 0 : bare.find_first_not_of('-'));
  bare = bare.substr(0, bare.find('='));
  std::vector<std::string> names;
  for (const OptionText& option : option_texts()) {
    if (takes(verb, option)) names.emplace_back(option.name);
  }
  const std::optional<std::string> meant = nearest(bare, names);
  throw ConfigError("unknown option " + word + " of " + std::string(verb.name) +
                    (meant ? ": did you mean --" + *meant + "?"
                           : ": see flashbound " + std::string(verb.name) + " --help"));
}

// Boost's exceptions in this command's words.
template <class Parse>
po::parsed_options parsed(const VerbText& verb, const Parse& parse) {
  try {
    return parse();
  } catch (const po::unknown_option& error) {
    reject_unknown(verb, error.get_option_name());
  } catch (const po::invalid_command_line_syntax& error) {
    switch (error.kind()) {
      case po::invalid_syntax::missing_parameter:
      case po::invalid_syntax::empty_adjacent_parameter:
        throw ConfigError(error.get_option_name() + ": needs a value");
      case po::invalid_syntax::extra_parameter:
        throw ConfigError(error.get_option_name() + ": takes no value");
      default: throw ConfigError(error.what());
    }
  } catch (const po::invalid_config_file_syntax& error) {
    throw ConfigError("line '" + error.tokens() + "': must be key = value");
  } catch (const po::error& error) {
    throw ConfigError(error.what());
  }
}

enum class Source { words, file };

void take(const po::parsed_options& parsed, Source source, const std::string& origin,
          Options& options) {
  std::map<std::string, bool> seen;
  for (const po::option& option : parsed.options) {
    if (option.position_key >= 0 || option.string_key.empty()) {
      const std::string word = option.value.empty() ? "" : option.value.front();
      throw ConfigError("unexpected word '" + word + "': options begin with --");
    }
    const std::string name = canonical(option.string_key);
    // --output --force names no file: the value was forgotten. --output=--force insists on it.
    const std::vector<std::string>& tokens = option.original_tokens;
    if (source == Source::words && tokens.size() == 2 && tokens[1].rfind("--", 0) == 0) {
      throw ConfigError("--" + option.string_key + ": needs a value");
    }
    if (seen[name]) throw ConfigError(name + ": is given twice");
    seen[name] = true;
    // The command line has been taken first and wins.
    if (options.given(name)) continue;
    options.set(name, {option.value.empty() ? "true" : option.value.front(), origin});
  }
}

}  // namespace

Options::Options(const VerbText& verb) : verb_(&verb) {
  for (const OptionText& option : option_texts()) {
    if (!takes(verb, option)) continue;
    const std::string name(option.name);
    if (option.metavar.empty()) values_[name] = {"false", "default", false};
    if (!option.fallback.empty()) values_[name] = {std::string(option.fallback), "default", false};
  }
}

bool Options::given(const std::string& name) const {
  const auto found = values_.find(name);
  return found != values_.end() && found->second.chosen;
}

std::optional<std::string> Options::find(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.text;
}

std::string Options::text(const std::string& name) const {
  const auto found = find(name);
  if (!found) throw ConfigError(name + ": is required by " + std::string(verb_->name));
  if (found->empty()) reject(name, "''", "not empty");
  return *found;
}

bool Options::flag(const std::string& name) const {
  const std::string value = text(name);
  if (value != "true" && value != "false") reject(name, value, "true or false");
  return value == "true";
}

Index Options::integer(const std::string& name) const { return parse_integer(name, text(name)); }

Index Options::integer(const std::string& name, Index low, Index high) const {
  const Index value = integer(name);
  if (value < low || value > high) {
    reject(name, std::to_string(value),
           "in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  }
  return value;
}

double Options::number(const std::string& name) const { return parse_number(name, text(name)); }

Bytes Options::bytes(const std::string& name) const { return parse_bytes(name, text(name)); }

Options parse_options(const VerbText& verb, std::span<const std::string> words) {
  Options options(verb);
  const std::vector<std::string> arguments(words.begin(), words.end());
  const po::options_description description = describe(verb, false);
  constexpr int kStyle = po::command_line_style::allow_long |
                         po::command_line_style::long_allow_next |
                         po::command_line_style::long_allow_adjacent;
  take(parsed(verb,
              [&] {
                return po::command_line_parser(arguments).options(description).style(kStyle).run();
              }),
       Source::words, "command line", options);
  if (options.given("config")) {
    const std::string path = options.text("config");
    std::istringstream in(read_text_file("config", path));
    parse_config(in, path, options);
  }
  return options;
}

void parse_config(std::istream& in, const std::string& path, Options& options) {
  const po::options_description description = describe(options.verb(), true);
  try {
    const auto found =
        parsed(options.verb(), [&] { return po::parse_config_file(in, description); });
    for (const po::option& option : found.options) {
      if (option.string_key == "config" || option.string_key == "print-config") {
        throw ConfigError(option.string_key + ": belongs on the command line");
      }
    }
    take(found, Source::file, path, options);
  } catch (const ConfigError& error) {
    throw ConfigError(path + ": " + error.what());
  }
}

namespace {

// A configuration file ends a value at # or the line's end and drops blanks around it.
void require_printable(const std::string& name, const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const bool cut = text.find_first_of("#\n") != std::string::npos;
  const bool trimmed = !text.empty() && (text.find_first_not_of(kBlanks) != 0 ||
                                         text.find_last_not_of(kBlanks) != text.size() - 1);
  if (cut || trimmed) {
    reject(name, text, "without #, line breaks and outer blanks to be printed for --config");
  }
}

}  // namespace

std::string print_config(const Options& options) {
  std::ostringstream text;
  text << "# flashbound " << options.verb().name << "\n";
  for (const OptionText& option : option_texts()) {
    const auto found = options.values().find(std::string(option.name));
    // An option may have another entry for another verb.
    if (found == options.values().end() || !takes(options.verb(), option)) continue;
    if (option.name == "config" || option.name == "print-config") continue;
    require_printable(std::string(option.name), found->second.text);
    // A default that were read back as a choice could contradict another choice.
    const char* unset = found->second.chosen ? "" : "# ";
    std::string origin = found->second.origin;
    std::replace(origin.begin(), origin.end(), '\n', '?');
    text << "# from: " << origin << "\n"
         << unset << option.name << " = " << found->second.text << "\n";
  }
  return text.str();
}

}  // namespace flashbound
