#include "experiments/problem_columns.hpp"

#include "experiments/problem_options.hpp"

#include <array>
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

}  // namespace

Document document_with_problem(std::initializer_list<std::string_view> others) {
  std::vector<std::string_view> names(others);
  names.emplace_back("mask");
  for (const auto& [name, value] : kNumbers) names.push_back(name);
  Document document;
  document.columns = columns_named(names);
  return document;
}

void set_problem(const Document& document, Row& row, const Problem& problem) {
  for (const auto& [name, value] : kNumbers) set(document, row, name, Int128{problem.*value});
  set(document, row, "mask", mask_name(problem));
}

}  // namespace flashbound
