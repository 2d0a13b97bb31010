#include "core/number_format.hpp"
#include "core/programs.hpp"
#include "core/recipe.hpp"
#include "experiments/command.hpp"
#include "experiments/distributions.hpp"
#include "experiments/kernels.hpp"
#include "experiments/numerics/claim.hpp"
#include "experiments/recorded_inputs.hpp"
#include "experiments/verify_problems.hpp"

namespace flashbound {

Outcome run_list(const Options&) {
  constexpr std::string_view kNames[] = {"kind", "name", "title", "source", "statement"};
  Outcome outcome;
  Document& document = outcome.document;
  document.columns = columns_named(kNames);
  document.shown = {"kind", "name", "title", "source"};  // statements are sentences
  const auto add = [&](const char* kind, std::string_view name, std::string title,
                       std::string_view source) {
    Row row;
    set(document, row, "kind", std::string(kind));
    set(document, row, "name", std::string(name));
    set(document, row, "title", std::move(title));
    set(document, row, "source", std::string(source));
    document.rows.push_back(std::move(row));
  };
  for (const Algorithm& a : algorithms()) {
    add("algorithm", a.name, std::string(a.title), a.source);
  }
  for (const Kernel& k : kernels()) add("kernel", k.name, std::string(k.title), "");
  for (const NumberFormatFacts& f : kNumberFormats) {
    add("format", f.name,
        std::to_string(f.bytes) + " bytes, " + std::to_string(f.significand_bits) +
            " significand bits",
        "");
  }
  for (const NamedRecipe& r : recipes()) add("recipe", r.name, std::string(r.title), "");
  for (const DistributionFacts& d : distributions()) {
    add("distribution", d.name, std::string(d.description), "");
  }
  for (const VerifyProblem& p : verify_problems()) {
    add("problem", p.name,
        std::to_string(p.problem.num_heads_q) + ":" + std::to_string(p.problem.num_heads_kv) +
            " heads, " + std::to_string(p.problem.seqlen_q) + " x " +
            std::to_string(p.problem.seqlen_kv) + ", head_dim " +
            std::to_string(p.problem.head_dim) + "/" + std::to_string(p.problem.head_dim_v),
        p.source);
  }
  for (const std::string& recorded : recorded_names()) {
    add("problem", recorded, "12 heads, 512 x 512, head_dim 32/32: recorded Q, K, V",
        "all-MiniLM-L6-v2 on public-domain text (experiments/activations)");
  }
  for (const NumericClaim& c : numeric_claims()) {
    add("claim", c.id, "published claim, see numerics --claim", c.source);
    set(document, document.rows.back(), "statement", std::string(c.statement));
  }
  return outcome;
}

}  // namespace flashbound
