#include "experiments/problem_options.hpp"

#include "core/errors.hpp"
#include "experiments/npy.hpp"

#include <string>

namespace flashbound {
namespace {

// An axis that one option names for both sides, or two options name apart.
struct PairedOption {
  const char* both;
  const char* q;
  const char* kv;
};

void reject_both_forms(const Options& options, const PairedOption& names) {
  for (const char* one : {names.q, names.kv}) {
    if (options.given(names.both) && options.given(one)) {
      throw ConfigError(std::string(names.both) + ": is given beside " + one +
                        ": must be one or the other");
    }
  }
}

// The value of `name` if given, else of `both` if given, else what the files say, else a default.
Index paired(const Options& options, const char* name, const char* both,
             const std::optional<Index>& known) {
  const bool own = options.given(name);
  if (own || options.given(both) || !known) {
    const std::string from = own ? name : both;
    const Index value = options.integer(from);
    if (known && value != *known) {
      reject(from, std::to_string(value), std::to_string(*known) + " as in the files");
    }
    return value;
  }
  return *known;
}

Index single(const Options& options, const char* name, const std::optional<Index>& known) {
  return paired(options, name, name, known);
}

std::vector<Index> offsets_of(const Options& options, const char* name) {
  std::vector<Index> offsets;
  if (!options.given(name)) return offsets;
  const std::string text = options.text(name);
  if (text.size() > 4 && text.substr(text.size() - 4) == ".npy") {
    const NpyArray array = read_npy(text);
    if (array.is_float() || array.shape.size() != 1) {
      reject(name, text, "a .npy of integers with one axis");
    }
    offsets.assign(array.integers.begin(), array.integers.end());
  } else {
    for (const std::string& part : split_commas(text)) offsets.push_back(parse_integer(name, part));
  }
  if (offsets.empty()) reject(name, text, "at least one offset (0)");
  return offsets;
}

void set_window(const Options& options, Problem& problem) {
  const std::string mask = options.text("mask");
  const bool left = options.given("window-left");
  const bool right = options.given("window-right");
  problem.window_left = options.integer("window-left");
  problem.window_right = options.integer("window-right");
  if (mask == "none") {
    if (options.given("mask") && (left || right)) {
      throw ConfigError("mask = none: is given beside a window: must be window or causal");
    }
  } else if (mask == "causal") {
    if (right && problem.window_right != 0) {
      reject("window-right", std::to_string(problem.window_right), "0 with mask = causal");
    }
    problem.window_right = 0;
  } else if (mask != "window") {
    reject("mask", mask, "none, causal or window");
  } else if (!left && !right) {
    throw ConfigError("mask = window: needs --window-left or --window-right");
  }
}

void set_block_mask(const Options& options, Problem& problem) {
  if (!options.given("block-mask")) {
    for (const char* name : {"block-mask-q", "block-mask-kv"}) {
      if (options.given(name)) throw ConfigError(std::string(name) + ": needs --block-mask");
    }
    return;
  }
  const std::string path = options.text("block-mask");
  const NpyArray array = read_npy(path);
  if (array.is_float() || array.shape.size() != 2) {
    reject("block-mask", path, "a .npy of bool or integers with two axes");
  }
  BlockMask mask;
  // Cells are the tile's blocks unless it is said otherwise; a verb that searches tiles has none.
  const auto size_of = [&](const char* of_cell, const char* of_tile) {
    const bool tiled = !options.given(of_cell) && options.find(of_tile).has_value();
    return options.integer(tiled ? of_tile : of_cell);
  };
  mask.block_q = size_of("block-mask-q", "block-q");
  mask.block_kv = size_of("block-mask-kv", "block-kv");
  mask.rows = array.shape[0];
  mask.cols = array.shape[1];
  for (const std::int64_t cell : array.integers) mask.cells.push_back(cell != 0 ? 1 : 0);
  problem.block_mask = std::move(mask);
}

void set_score_modifiers(const Options& options, Problem& problem) {
  if (options.given("softmax-scale")) problem.softmax_scale = options.number("softmax-scale");
  problem.softcap = options.number("softcap");
  if (options.flag("alibi")) problem.alibi_slopes = alibi_slopes(problem.num_heads_q);
  if (!options.given("sink")) return;
  for (const std::string& part : split_commas(options.text("sink"))) {
    problem.sink.push_back(parse_number("sink", part));
  }
  if (problem.sink.size() == 1) {
    problem.sink.resize(static_cast<std::size_t>(problem.num_heads_q), problem.sink.front());
  }
}

void set_lengths(const Options& options, const std::optional<KnownShape>& known, Problem& problem) {
  problem.cu_seqlens_q = offsets_of(options, "cu-seqlens-q");
  problem.cu_seqlens_kv = offsets_of(options, "cu-seqlens-kv");
  // Packed lengths say themselves how long they are together.
  const auto length = [&](const char* name, const std::vector<Index>& cu,
                          std::optional<Index> fixed) {
    if (!fixed && !cu.empty()) fixed = cu.back();
    return paired(options, name, "seqlen", fixed);
  };
  problem.seqlen_q = length("seqlen-q", problem.cu_seqlens_q,
                            known ? std::optional(known->seqlen_q) : std::nullopt);
  problem.seqlen_kv = length("seqlen-kv", problem.cu_seqlens_kv,
                             known ? std::optional(known->seqlen_kv) : std::nullopt);
}

}  // namespace

Problem problem_of(const Options& options, const std::optional<KnownShape>& known,
                   Emptiness emptiness) {
  reject_both_forms(options, {"num-heads", "num-heads-q", "num-heads-kv"});
  reject_both_forms(options, {"seqlen", "seqlen-q", "seqlen-kv"});
  const auto from_files = [&](Index KnownShape::*member) {
    return known ? std::optional<Index>((*known).*member) : std::nullopt;
  };
  Problem problem;
  problem.batch = single(options, "batch", from_files(&KnownShape::batch));
  problem.num_heads_q =
      paired(options, "num-heads-q", "num-heads", from_files(&KnownShape::num_heads_q));
  problem.num_heads_kv =
      paired(options, "num-heads-kv", "num-heads", from_files(&KnownShape::num_heads_kv));
  set_lengths(options, known, problem);
  problem.head_dim = single(options, "head-dim", from_files(&KnownShape::head_dim));
  std::optional<Index> dv = from_files(&KnownShape::head_dim_v);
  if (!dv) dv = problem.head_dim;
  problem.head_dim_v = known || !options.given("head-dim-v") ? single(options, "head-dim-v", dv)
                                                             : options.integer("head-dim-v");
  set_window(options, problem);
  set_block_mask(options, problem);
  // Before one value a head is made: absurd head counts must not be allocated for.
  Problem without_lists = problem;
  validate(without_lists, emptiness);
  set_score_modifiers(options, problem);
  validate(problem, emptiness);
  return problem;
}

Tile tile_of(const Options& options) {
  Tile tile;
  tile.block_q = options.integer("block-q");
  tile.block_kv = options.integer("block-kv");
  if (options.find("panel")) tile.panel = options.integer("panel");
  if (options.find("num-splits")) tile.num_splits = options.integer("num-splits");
  validate(tile);
  return tile;
}

std::string mask_name(const Problem& problem) {
  if (problem.window_left < 0 && problem.window_right < 0) return "none";
  return problem.window_left < 0 && problem.window_right == 0 ? "causal" : "window";
}

}  // namespace flashbound
