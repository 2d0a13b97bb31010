#include "core/program_names.hpp"

#include <array>
#include <cstddef>

namespace flashbound {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 6> kAxes{"one",      "query",      "key",
                                                "head_dim", "head_dim_v", "split"};
constexpr std::array<std::string_view, 12> kRanges{
    "all_q_blocks",       "all_kv_blocks",     "visible_kv_blocks",   "visible_kv_blocks_split",
    "visible_q_blocks",   "starting_q_blocks", "continuing_q_blocks", "q_blocks_without_keys",
    "visible_key_panels", "head_dim_panels",   "head_dim_v_blocks",   "splits"};
constexpr std::array<std::string_view, 4> kTileRoles{"operand", "score", "statistic",
                                                     "accumulator"};
constexpr std::array<std::string_view, 3> kTensorRoles{"input", "intermediate", "output"};
constexpr std::array<std::string_view, 5> kContents{"undefined", "zero", "negative_infinity",
                                                    "sink_max", "sink_sum"};
constexpr std::array<std::string_view, 3> kWidths{"data", "statistic", "partial"};
constexpr std::array<std::string_view, 20> kOps{"kernel",
                                                "loop",
                                                "load",
                                                "store",
                                                "allocate",
                                                "release",
                                                "multiply_transposed",
                                                "multiply",
                                                "logits",
                                                "row_max_update",
                                                "exponentiate",
                                                "rescale",
                                                "row_sum_update",
                                                "scale_add",
                                                "divide",
                                                "lse",
                                                "multiply_left_transposed",
                                                "row_dot",
                                                "softmax_gradient",
                                                "logits_gradient"};

template <class Enum, std::size_t n>
bool find(const std::array<std::string_view, n>& names, std::string_view text, Enum& value) {
  for (std::size_t index = 0; index < n; ++index) {
    if (names[index] == text) {
      value = static_cast<Enum>(index);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string_view name(Axis value) { return kAxes.at(static_cast<std::size_t>(value)); }
std::string_view name(RangeKind value) { return kRanges.at(static_cast<std::size_t>(value)); }
std::string_view name(TileRole value) { return kTileRoles.at(static_cast<std::size_t>(value)); }
std::string_view name(TensorRole value) { return kTensorRoles.at(static_cast<std::size_t>(value)); }
std::string_view name(Content value) { return kContents.at(static_cast<std::size_t>(value)); }
std::string_view name(Width value) { return kWidths.at(static_cast<std::size_t>(value)); }
std::string_view name(Op value) { return kOps.at(static_cast<std::size_t>(value)); }

bool parse(std::string_view text, Axis& value) { return find(kAxes, text, value); }
bool parse(std::string_view text, RangeKind& value) { return find(kRanges, text, value); }
bool parse(std::string_view text, TileRole& value) { return find(kTileRoles, text, value); }
bool parse(std::string_view text, TensorRole& value) { return find(kTensorRoles, text, value); }
bool parse(std::string_view text, Content& value) { return find(kContents, text, value); }
bool parse(std::string_view text, Width& value) { return find(kWidths, text, value); }
bool parse(std::string_view text, Op& value) { return find(kOps, text, value); }

}  // namespace flashbound
