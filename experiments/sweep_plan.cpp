#include "experiments/sweep_plan.hpp"

#include "core/errors.hpp"
#include "experiments/results.hpp"
#include "experiments/sweep.hpp"
#include "experiments/sweep_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>

namespace flashbound {
namespace {

// Options that say how a sweep runs, not what it computes.
constexpr std::array<std::string_view, 9> kOfTheSweep{
    "of", "shard", "output", "format", "report", "force", "config", "print-config", "quiet"};

bool of_the_sweep(std::string_view option) {
  return option == "threads" ||
         std::find(kOfTheSweep.begin(), kOfTheSweep.end(), option) != kOfTheSweep.end();
}

bool lists(const OptionText& option) {
  return option.metavar == "N" || option.metavar == "NAME" || option.metavar == "KIND" ||
         option.metavar == "FORMAT" || option.metavar == "SIZE" || option.metavar == "X";
}

Shard shard_of(const Options& options) {
  const std::string text = options.text("shard");
  const std::string allowed = "I/N with 1 <= I <= N <= " + std::to_string(kShardsMax);
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) reject("shard", text, allowed);
  const Index index = parse_integer("shard", text.substr(0, slash));
  const Index count = parse_integer("shard", text.substr(slash + 1));
  if (index < 1 || index > count || count > kShardsMax) reject("shard", text, allowed);
  return {index - 1, count};
}

const VerbText& swept_verb(const Options& options) {
  const std::string text = options.text("of");
  if (const VerbText* verb = verb_named(text); verb != nullptr && can_sweep(*verb)) return *verb;
  reject("of", text, "count or tile");
}

// A value alone, among defaults that go with it: what is refused here is refused everywhere.
void judge(const SweepPlan& plan, const std::string& option, const std::string& value) {
  if (option.starts_with("block-mask-")) return;  // says nothing without its file
  Options alone(plan.base.verb());
  const auto give = [&](const std::string& name, const std::string& text) {
    alone.set(name, {text, "command line"});
  };
  give("seqlen", "64");
  if (alone.verb().verb == kTile) give("sram", "1GiB");
  if (option.starts_with("window")) give("mask", "window");
  if (option == "stages") give("footprint", "kernel");
  if (option == "panel") give("block-kv", value);
  if (option == "num-heads-kv") give("num-heads-q", value);
  if (option == "num-heads-q") give("num-heads-kv", "1");
  if (option == "seqlen-q") give("seqlen-kv", "64");
  if (option == "seqlen-kv") give("seqlen-q", "64");
  if (option == "mask" && value == "window") give("window-left", "8");
  if (option.starts_with("seqlen-")) alone.erase("seqlen");
  give(option, value);
  require_sweepable(alone);
}

// Values that are good apart may not go together at some points, which are rows then. What goes
// together nowhere, or lacks something everywhere, is an error. Looks at points spread evenly.
void require_some_point(const SweepPlan& plan) {
  constexpr Index kLooks = 256;
  Options options = plan.base;
  std::optional<ConfigError> first;
  for (Index look = 0; look < std::min(plan.points, kLooks); ++look) {
    set_point(plan, plan.points <= kLooks ? look : plan.points / kLooks * look, options);
    try {
      require_sweepable(options);
      return;
    } catch (const ConfigError& error) {
      if (!first) first = error;
    }
  }
  throw *first;
}

// FNV-1a over a file's bytes: rows depend on them, not on the name.
std::string content_mark(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char byte = 0; in.get(byte);) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  return fmt::format("fnv1a {:016x}", hash);
}

// Lists may be files too.
bool names_file(const std::string& option, const std::string& text) {
  return option == "block-mask" || text.ends_with(".npy");
}

}  // namespace

SweepPlan sweep_plan(const Options& options) {
  const VerbText& verb = swept_verb(options);
  SweepPlan plan{.base = Options(verb), .shard = shard_of(options)};
  // A file has the rows that the verb writes as JSON, a table those that it shows.
  const bool to_file = options.text("output") != "-";
  plan.base.set("format", {to_file ? "jsonl" : options.text("format"), "default", false});
  Int128 points = 1;
  for (const OptionText& option : option_texts()) {
    const std::string name(option.name);
    if ((option.verbs & kSweep) == 0 || !options.given(name) || of_the_sweep(name)) continue;
    const auto taken = [&](const OptionText& text) {
      return text.name == option.name && (text.verbs & verb.verb) != 0;
    };
    const auto texts = option_texts();
    if (std::none_of(texts.begin(), texts.end(), taken)) {
      reject(name, options.text(name), "absent: " + std::string(verb.name) + " does not take it");
    }
    const std::string text = options.text(name);
    std::vector<std::string> values{text};
    if (lists(option)) values = sweep_values(name, text, ranges_of(option));
    plan.base.set(name, {values.front(), options.values().at(name).origin});
    if (lists(option)) {
      for (const std::string& value : values) judge(plan, name, value);
    }
    if (values.size() < 2 && values.front() == text) continue;
    points = checked_mul(points, static_cast<Int128>(values.size()));
    if (points > kSweepPointsMax) reject(name, text, "part of at most 2^40 points");
    plan.axes.push_back({name, std::move(values)});
  }
  plan.points = static_cast<Index>(points);
  require_some_point(plan);
  return plan;
}

void set_point(const SweepPlan& plan, Index point, Options& options) {
  for (std::size_t a = plan.axes.size(); a-- > 0;) {
    const SweepAxis& axis = plan.axes[a];
    const auto size = static_cast<Index>(axis.values.size());
    options.set_text(axis.option, axis.values[static_cast<std::size_t>(point % size)]);
    point /= size;
  }
}

std::string sweep_config_json(const SweepPlan& plan) {
  std::string text = fmt::format("{{\"of\": {}", json_string(plan.base.verb().name));
  for (const auto& entry : plan.base.values()) {
    const std::string& name = entry.first;
    if (of_the_sweep(name)) continue;
    const auto axis = std::find_if(plan.axes.begin(), plan.axes.end(),
                                   [&](const SweepAxis& a) { return a.option == name; });
    if (axis == plan.axes.end()) {
      text += fmt::format(", {}: {}", json_string(name), json_string(entry.second.text));
      if (names_file(name, entry.second.text)) {
        text += fmt::format(", {}: {}", json_string(name + " content"),
                            json_string(content_mark(entry.second.text)));
      }
      continue;
    }
    std::string values;
    for (const std::string& one : axis->values) {
      values += (values.empty() ? "" : ", ") + json_string(one);
    }
    text += fmt::format(", {}: [{}]", json_string(name), values);
  }
  return text + "}";
}

}  // namespace flashbound
