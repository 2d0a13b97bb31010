// Every reader of outside input: it may refuse what it is given with a documented error, and do
// nothing else. The first byte selects the reader, the second the verb where there is one.
#include "core/errors.hpp"
#include "core/program.hpp"
#include "core/recipe.hpp"
#include "experiments/io_error.hpp"
#include "experiments/npy.hpp"
#include "experiments/options.hpp"
#include "experiments/problem_options.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace flashbound;

const VerbText& verb_by(std::uint8_t byte) { return verb_texts()[byte % verb_texts().size()]; }

void require(bool law) {
  if (!law) std::abort();
}

// Whether parsing or using the options would open one of this machine's files.
bool names_a_file(const Options& options) {
  for (const char* option : {"config", "block-mask"}) {
    if (options.given(option)) return true;
  }
  constexpr std::array<const char*, 2> kListOrFile{"cu-seqlens-q", "cu-seqlens-kv"};
  return std::any_of(kListOrFile.begin(), kListOrFile.end(), [&](const char* option) {
    return options.given(option) && options.text(option).find(".npy") != std::string::npos;
  });
}

// What is printed reads back as the same choices.
void check_printed(const Options& options) {
  std::string printed;
  try {
    printed = print_config(options);
  } catch (const ConfigError&) {
    return;  // a value that no file can hold
  }
  Options again(options.verb());
  std::istringstream in(printed);
  parse_config(in, "printed.conf", again);
  for (const auto& [name, value] : options.values()) {
    if (name == "config" || name == "print-config") continue;
    require(again.find(name) == value.text);
    require(again.given(name) == options.given(name));
  }
}

void use(const Options& options) {
  if (options.verb().verb == kCount && !names_a_file(options)) {
    problem_of(options, std::nullopt, Emptiness::rejected);
    tile_of(options);
    if (options.given("sram")) options.bytes("sram");
  }
}

void read_config(const std::string& text, const VerbText& verb) {
  Options options(verb);
  std::istringstream in(text);
  parse_config(in, "fuzz.conf", options);
  check_printed(options);
  use(options);
}

void read_options(const std::string& text, const VerbText& verb) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word);) {
    if (word.find("--config") != std::string::npos) return;  // would be opened while parsing
    words.push_back(word);
  }
  const Options options = parse_options(verb, words);
  check_printed(options);
  use(options);
}

void read_npy_text(const std::string& text) {
  const NpyArray array = parse_npy(text, "fuzz.npy");
  const std::size_t elements = array.is_float() ? array.floats.size() : array.integers.size();
  require(elements <= text.size());
  const bool empty = std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end();
  Index wanted = empty ? 0 : 1;
  for (const Index length : array.shape) wanted *= empty ? 0 : length;
  require(static_cast<Index>(elements) == wanted);
}

void read_program(const std::string& text) {
  // Members that a statement has no use for are not written again, so the texts are compared.
  const std::string written = to_json(program_from_json(text));
  require(to_json(program_from_json(written)) == written);
}

void read_recipe(const std::string& text) {
  const Recipe recipe = recipe_from_json(text);
  require(recipe_from_json(to_json(recipe)) == recipe);
}

void read_format(const std::string& text) {
  const FloatFormat format = parse_float_format("format", text);
  require(parse_float_format("format", to_string(format)) == format);
  require(round_to(format, format.largest) == format.largest);
}

void read(std::uint8_t reader, const VerbText& verb, const std::string& text) {
  constexpr unsigned kReaders = 6;
  switch (reader % kReaders) {
    case 0: return read_config(text, verb);
    case 1: return read_options(text, verb);
    case 2: return read_npy_text(text);
    case 3: return read_program(text);
    case 4: return read_recipe(text);
    default: return read_format(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kPrefix = 2;
  if (size < kPrefix) return 0;
  const std::string text(data + kPrefix, data + size);
  try {
    read(data[0], verb_by(data[1]), text);
  } catch (const ConfigError&) {
  } catch (const IoError&) {
  } catch (const CountOverflow&) {
  }
  return 0;
}
