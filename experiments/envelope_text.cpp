#include "experiments/envelope_text.hpp"

#include "sim/envelope_facts.hpp"

#include <fmt/format.h>

#include <map>

namespace flashbound {
namespace {

double words_over_d_squared(const StairRequest& request, Bytes sram) {
  const auto d = static_cast<double>(request.problem.head_dim);
  return static_cast<double>(sram.value()) / static_cast<double>(byte_size(request.search.dtype)) /
         (d * d);
}

std::string at(const StairRequest& request, Bytes sram) {
  return fmt::format("{} bytes ({:.3g} d^2 words)", to_string(sram),
                     words_over_d_squared(request, sram));
}

// Algorithms take turns by a step's width where they are nearly equal: the first time each leads,
// and how often it does.
std::string takeover_text(const StairRequest& request, const Staircase& merged) {
  std::map<std::string_view, int> turns;
  for (const Takeover& takeover : takeovers(merged)) ++turns[takeover.algorithm];
  std::string text = "least from ";
  bool first = true;
  for (const Takeover& takeover : takeovers(merged)) {
    int& times = turns[takeover.algorithm];
    if (times == 0) continue;
    text += fmt::format("{}{}: {}{}", first ? "" : "; ", at(request, takeover.from),
                        takeover.algorithm, times > 1 ? fmt::format(" ({} turns)", times) : "");
    times = 0;
    first = false;
  }
  return text;
}

const Staircase* of(const StairRequest& request, const std::vector<Staircase>& found,
                    std::string_view algorithm) {
  for (std::size_t a = 0; a < found.size(); ++a) {
    if (request.algorithms[a]->name == algorithm) return &found[a];
  }
  return nullptr;
}

std::string crossing_text(const StairRequest& request, const std::vector<Staircase>& found,
                          std::string_view small_name) {
  const Staircase* flash = of(request, found, "flash2");
  const Staircase* small = of(request, found, small_name);
  if (flash == nullptr || small == nullptr) return "";
  const Crossing crosses = crossing(*flash, *small);
  if (!crosses.for_good) return "";
  return fmt::format("\nflash2 moves less than {} for good from {}", small_name,
                     at(request, *crosses.for_good));
}

bool square_unmasked(const Problem& p) {
  return p.seqlen_q == p.seqlen_kv && p.head_dim == p.head_dim_v && p.window_left < 0 &&
         p.window_right < 0 && !p.block_mask && p.cu_seqlens_q.empty();
}

// The flash term between 4 d^2 words and an eighth of N d, less what moves once anyway.
std::string law_text(const StairRequest& request, const std::vector<Staircase>& found) {
  const Problem& p = request.problem;
  const Staircase* flash = of(request, found, "flash2");
  if (flash == nullptr || !square_unmasked(p)) return "";
  const Index word = byte_size(request.search.dtype);
  const Bytes low(Int128{4} * p.head_dim * p.head_dim * word);
  const Bytes high(Int128{p.seqlen_q} * p.head_dim * word / 8);
  if (low >= high || flash->at(low) == nullptr) return "";
  const Int128 heads = Int128{p.batch} * p.num_heads_q;
  const Bytes once(heads * p.seqlen_q * (Int128{2} * p.head_dim * word + std::max<Index>(word, 4)));
  const auto exponent = slope(*flash, low, high, once);
  const auto constant = flash_constant(*flash, p, request.search.dtype, low);
  if (!exponent || !constant) return "";
  return fmt::format(
      "\nflash2 less Q, O and lse falls as M^{:.3f} from 4 d^2 to N d / 8 words; at 4 d^2 words it "
      "moves {:.3g} N^2 d^2 / M",
      *exponent, *constant);
}

// The term of blocked products between d^2 / 16 and d^2 / 2 words, less the scores that are spilled
// once (written; reading them is part of the last product) and what moves once anyway.
std::string small_law_text(const StairRequest& request, const std::vector<Staircase>& found) {
  const Problem& p = request.problem;
  const Staircase* small = of(request, found, "small-cache");
  if (small == nullptr || !square_unmasked(p)) return "";
  const NumberFormat dtype = request.search.dtype;
  const Index word = byte_size(dtype);
  const Int128 heads = Int128{p.batch} * p.num_heads_q;
  const Bytes fixed(
      heads * p.seqlen_q *
      (Int128{p.seqlen_kv} * word + Int128{p.head_dim_v} * word + std::max<Index>(word, 4)));
  const Bytes low(Int128{p.head_dim} * p.head_dim * word / 16);
  const Bytes high(Int128{p.head_dim} * p.head_dim * word / 2);
  if (low.value() < 1 || small->at(low) == nullptr) return "";
  const auto exponent = slope(*small, low, high, fixed);
  const auto constant = small_cache_constant(*small, p, dtype, high, fixed);
  if (!exponent || !constant) return "";
  return fmt::format(
      "\nsmall-cache less spilled scores, O and lse falls as M^{:.3f} from d^2 / 16 to d^2 / 2 "
      "words; "
      "there it moves {:.3g} N^2 d / sqrt(M)",
      *exponent, *constant);
}

}  // namespace

std::string envelope_text(const StairRequest& request, const std::vector<Staircase>& found,
                          const Staircase& merged) {
  std::string text = takeover_text(request, merged);
  text += crossing_text(request, found, "small-cache");
  text += crossing_text(request, found, "small-cache-spill-both");
  text += law_text(request, found);
  text += small_law_text(request, found);
  text += fmt::format("\nmore than {} helps nothing; within 10 % of that from {} on",
                      at(request, knee(merged)), at(request, knee_within(merged, 0.1)));
  text += fmt::format("\n{} tiles tried, {}", merged.tried,
                      merged.all_tiles ? "none other moves less" : "others may move less");
  return text;
}

}  // namespace flashbound
