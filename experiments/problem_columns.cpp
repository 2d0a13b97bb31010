#include "experiments/problem_columns.hpp"

#include "experiments/problem_options.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace flashbound {
namespace {

using Value = Index Problem::*;

constexpr std::array<std::pair<std::string_view, Value>, 9> kNumbers{{
    {"batch", &Problem::batch},
    {"num_heads_q", &Problem::num_heads_q},
    {"num_heads_kv", &Problem::num_heads_kv},
    {"seqlen_q", &Problem::seqlen_q},
    {"seqlen_kv", &Problem::seqlen_kv},
    {"head_dim", &Problem::head_dim},
    {"head_dim_v", &Problem::head_dim_v},
    {"window_left", &Problem::window_left},
    {"window_right", &Problem::window_right},
}};

std::string text_of(const BlockMask& mask) {
  const auto visible = mask.cells.size() - static_cast<std::size_t>(
                                               std::count(mask.cells.begin(), mask.cells.end(), 0));
  return std::to_string(mask.rows) + " x " + std::to_string(mask.cols) + " cells of " +
         std::to_string(mask.block_q) + " x " + std::to_string(mask.block_kv) + ", " +
         std::to_string(visible) + " visible";
}

}  // namespace

Document document_with_problem(std::initializer_list<std::string_view> others) {
  std::vector<std::string_view> names(others);
  for (const std::string_view name : {"mask", "sequences", "block_mask"}) names.push_back(name);
  for (const auto& [name, value] : kNumbers) names.push_back(name);
  Document document;
  document.columns = columns_named(names);
  return document;
}

void set_problem(const Document& document, Row& row, const Problem& problem) {
  for (const auto& [name, value] : kNumbers) set(document, row, name, Int128{problem.*value});
  set(document, row, "mask", mask_name(problem));
  set(document, row, "sequences", Int128{sequence_count(problem)});
  if (problem.block_mask) set(document, row, "block_mask", text_of(*problem.block_mask));
}

}  // namespace flashbound
