// Options of one call: the command line over a configuration file over defaults. Values stay text
// until a getter asks for a type; every getter rejects what it cannot take exactly.
#pragma once

#include "core/units.hpp"
#include "experiments/option_table.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace flashbound {

class Options {
 public:
  struct Value {
    std::string text;
    std::string origin;  // "default", "command line" or the configuration file's path
    bool chosen = true;  // by the user; a file may be called "default"
  };

  explicit Options(const VerbText& verb);

  const VerbText& verb() const { return *verb_; }

  // Given, on the command line or in a file; a default does not count.
  bool given(const std::string& name) const;
  // Given or with a default.
  std::optional<std::string> find(const std::string& name) const;
  // The text, or ConfigError "name: is required".
  std::string text(const std::string& name) const;
  bool flag(const std::string& name) const;
  // A whole number in [low, high], else ConfigError.
  Index integer(const std::string& name, Index low, Index high) const;
  // Any 64-bit whole number: the range is judged by whoever knows it.
  Index integer(const std::string& name) const;
  double number(const std::string& name) const;
  // A size with a unit: 4096, 192KiB, 20MB.
  Bytes bytes(const std::string& name) const;

  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  // Another text for an option that is given.
  void set_text(const std::string& name, const std::string& text) { values_[name].text = text; }
  void erase(const std::string& name) { values_.erase(name); }
  const std::map<std::string, Value>& values() const { return values_; }

 private:
  const VerbText* verb_;
  std::map<std::string, Value> values_;
};

// Parses the words after the verb, and the file that --config names. Throws ConfigError.
Options parse_options(const VerbText& verb, std::span<const std::string> words);

// Reads key = value lines into `options` where the command line said nothing.
void parse_config(std::istream& in, const std::string& path, Options& options);

// All options, one `key = value` a line with its origin as a comment; --config reads it back.
// Throws ConfigError for a value that such a line cannot hold.
std::string print_config(const Options& options);

// Exact parsers, of a whole text. `field` is for the error.
Index parse_integer(const std::string& field, const std::string& text);
double parse_number(const std::string& field, const std::string& text);
Bytes parse_bytes(const std::string& field, const std::string& text);
std::vector<std::string> split_commas(const std::string& text);

// The candidate nearest to `word` by edits, if near enough to be a slip of the hand.
std::optional<std::string> nearest(const std::string& word,
                                   const std::vector<std::string>& candidates);

}  // namespace flashbound
