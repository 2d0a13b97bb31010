#include "experiments/published.hpp"

#include "core/bounds.hpp"
#include "experiments/problem_options.hpp"
#include "experiments/results.hpp"

#include <fmt/format.h>

namespace flashbound {
namespace {

// The fast memory in elements, where the expressions are about such a problem.
std::optional<Elements> sram_elements(const Problem& p, NumberFormat dtype, Bytes sram) {
  const bool square = p.seqlen_q == p.seqlen_kv && p.head_dim == p.head_dim_v &&
                      mask_name(p) == "none" && !p.block_mask && p.cu_seqlens_q.empty();
  const Elements elements(sram.value() / byte_size(dtype));
  if (!square || elements.value() < 1) return std::nullopt;
  return elements;
}

}  // namespace

std::string published_json(const Problem& problem, NumberFormat dtype, Bytes sram) {
  const auto elements = sram_elements(problem, dtype, sram);
  if (!elements) return "";
  std::string text = ", \"published\": [";
  for (const PublishedBound& bound :
       published_bounds(problem.seqlen_q, problem.head_dim, *elements)) {
    text += fmt::format(
        "{}{{\"name\": {}, \"expression\": {}, \"domain\": {}, \"in_domain\": {}, "
        "\"elements_without_constant\": {}, \"source\": {}}}",
        text.back() == '[' ? "" : ", ", json_string(bound.name), json_string(bound.expression),
        json_string(bound.domain), bound.in_domain, bound.value, json_string(bound.source));
  }
  return text + "]";
}

std::optional<double> published_bytes(const Problem& problem, NumberFormat dtype, Bytes sram) {
  const auto elements = sram_elements(problem, dtype, sram);
  if (!elements) return std::nullopt;
  for (const PublishedBound& bound :
       published_bounds(problem.seqlen_q, problem.head_dim, *elements)) {
    const bool of_exact = bound.name == "exact-large-cache" || bound.name == "exact-small-cache";
    if (!of_exact || !bound.in_domain) continue;
    const double heads =
        static_cast<double>(problem.batch) * static_cast<double>(problem.num_heads_q);
    return heads * bound.value * static_cast<double>(byte_size(dtype));
  }
  return std::nullopt;
}

}  // namespace flashbound
