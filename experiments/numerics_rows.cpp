#include "experiments/numerics_rows.hpp"

#include "experiments/problem_columns.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace flashbound {
namespace {

// Columns that tell points apart; a table shows the first three always.
constexpr std::array<std::string_view, 18> kIdentity{
    "algorithm",    "recipe",       "distribution", "seed",     "batch",      "num_heads_q",
    "num_heads_kv", "seqlen_q",     "seqlen_kv",    "head_dim", "head_dim_v", "mask",
    "window_left",  "window_right", "block_q",      "block_kv", "panel",      "num_splits"};
constexpr std::size_t kAlwaysShown = 3;

Row identity_row(const Document& document, const NumericsRequest& request,
                 const NumericsPoint& point) {
  Row row;
  const auto text = [&](std::string_view column, std::string_view value) {
    set(document, row, column, std::string(value));
  };
  const auto integer = [&](std::string_view column, Int128 value) {
    set(document, row, column, value);
  };
  set_problem(document, row, point.problem);
  text("algorithm", point.algorithm->name);
  integer("block_q", point.tile.block_q);
  integer("block_kv", point.tile.block_kv);
  integer("panel", point.tile.panel);
  integer("num_splits", point.tile.num_splits);
  text("recipe", point.recipe->recipe.name);
  if (!point.distribution.empty()) text("distribution", point.distribution);
  integer("seed", static_cast<Int128>(point.seed));
  text("reference", name(request.reference));
  text("reference_inputs", name(request.reference_inputs));
  return row;
}

// JSON has no numbers for infinities and NaN.
std::string json_number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  return nlohmann::json(value).dump();
}

std::string histogram_json(const UlpHistogram& histogram) {
  std::string text = "[";
  for (std::size_t bin = 0; bin < histogram.size(); ++bin) {
    text += fmt::format("{}{{\"bin\": \"{}\", \"count\": {}}}", bin == 0 ? "" : ", ",
                        ulp_bin_name(bin), histogram[bin]);
  }
  return text + "]";
}

std::string lse_json(const Measurement& measurement) {
  if (!measurement.lse) return "null";
  const ErrorMetrics& lse = *measurement.lse;
  return fmt::format(
      "{{\"elements\": {}, \"finite\": {}, \"max_abs_error\": {}, \"max_relative_error\": {}, "
      "\"rmse\": {}, \"max_ulp_error\": {}, \"bias\": {}, \"bias_sign_test_p\": {}, "
      "\"nonfinite_mismatches\": {}, \"undecided\": {}}}",
      lse.count, lse.finite, json_number(lse.max_abs), json_number(lse.max_relative),
      json_number(lse.rmse), json_number(lse.max_ulp), json_number(lse.signed_error.mean),
      json_number(lse.signed_error.sign_test_p), lse.nonfinite_mismatch, measurement.undecided_lse);
}

// A file's recipe is known by nothing but its fields.
std::string recipe_json(const RequestedRecipe& requested) {
  if (!requested.from_file) return "";
  return ", \"recipe_fields\": " + nlohmann::ordered_json::parse(to_json(requested.recipe)).dump();
}

// Only where there is something that they are of.
void set_errors(const Document& document, Row& row, const Measurement& measurement) {
  const ErrorMetrics& o = measurement.o;
  if (o.finite == 0) return;
  const auto number = [&](std::string_view column, double value) {
    set(document, row, column, value);
  };
  number("max_abs_error", o.max_abs);
  number("max_relative_error", o.max_relative);
  number("rmse", o.rmse);
  number("max_ulp_error", o.max_ulp);
  number("bias", o.signed_error.mean);
  number("magnitude_bias", o.magnitude_error.mean);
  if (measurement.o_per_row.finite == 0) return;
  number("bias_sign_test_p", measurement.o_per_row.signed_error.sign_test_p);
  number("magnitude_bias_sign_test_p", measurement.o_per_row.magnitude_error.sign_test_p);
}

void set_events(const Document& document, Row& row, const Measurement& measurement) {
  const auto integer = [&](std::string_view column, Index value) {
    set(document, row, column, Int128{value});
  };
  integer("rescales", measurement.rescales.done);
  integer("rescales_skipped", measurement.rescales.skipped);
  if (measurement.range) {
    integer("overflows", measurement.range->overflows);
    integer("underflows", measurement.range->underflows);
  }
  integer("elements", measurement.o.count);
  integer("nonfinite_mismatches", measurement.o.nonfinite_mismatch);
  integer("undecided", measurement.undecided_o);
}

const Cell& cell(const Document& document, const Row& row, std::string_view name) {
  const auto column = std::find_if(document.columns.begin(), document.columns.end(),
                                   [&](const Column* c) { return c->name == name; });
  return row.cells[static_cast<std::size_t>(column - document.columns.begin())];
}

bool varies(const Document& document, std::string_view name) {
  return std::any_of(document.rows.begin(), document.rows.end(), [&](const Row& row) {
    return cell(document, row, name) != cell(document, document.rows.front(), name);
  });
}

bool is_anywhere(const Document& document, std::string_view name) {
  return std::any_of(document.rows.begin(), document.rows.end(), [&](const Row& row) {
    return !std::holds_alternative<std::monostate>(cell(document, row, name));
  });
}

bool is_nonzero_anywhere(const Document& document, std::string_view name) {
  return std::any_of(document.rows.begin(), document.rows.end(), [&](const Row& row) {
    const Int128* count = std::get_if<Int128>(&cell(document, row, name));
    return count != nullptr && *count != 0;
  });
}

}  // namespace

Document numerics_document() {
  return document_with_problem({"algorithm",
                                "block_q",
                                "block_kv",
                                "num_splits",
                                "status",
                                "reason",
                                "panel",
                                "recipe",
                                "distribution",
                                "seed",
                                "reference",
                                "reference_inputs",
                                "elements",
                                "max_abs_error",
                                "max_relative_error",
                                "rmse",
                                "max_ulp_error",
                                "bias",
                                "bias_sign_test_p",
                                "magnitude_bias",
                                "magnitude_bias_sign_test_p",
                                "lse_max_abs_error",
                                "rescales",
                                "rescales_skipped",
                                "overflows",
                                "underflows",
                                "nonfinite_mismatches",
                                "bound_max",
                                "ratio_to_bound",
                                "undecided"});
}

Row measured_row(const Document& document, const NumericsRequest& request,
                 const NumericsPoint& point, const Measurement& measurement) {
  Row row = identity_row(document, request, point);
  set(document, row, "status", std::string("ok"));
  set_errors(document, row, measurement);
  set_events(document, row, measurement);
  if (measurement.lse && measurement.lse->finite > 0) {
    set(document, row, "lse_max_abs_error", measurement.lse->max_abs);
  }
  if (measurement.bound_max) {
    set(document, row, "bound_max", *measurement.bound_max);
    set(document, row, "ratio_to_bound", *measurement.ratio_to_bound);
  }
  row.extra_json = "\"ulp_histogram\": " + histogram_json(measurement.o.ulp_histogram) +
                   ", \"lse\": " + lse_json(measurement) + recipe_json(*point.recipe);
  return row;
}

Row infeasible_row(const Document& document, const NumericsRequest& request,
                   const NumericsPoint& point, const std::string& reason) {
  Row row = identity_row(document, request, point);
  set(document, row, "status", std::string("infeasible"));
  set(document, row, "reason", reason);
  row.extra_json = "\"ulp_histogram\": null, \"lse\": null" + recipe_json(*point.recipe);
  return row;
}

void finish_numerics_table(const NumericsRequest& request, Document& document) {
  for (std::size_t i = 0; i < kIdentity.size(); ++i) {
    const bool shown = i < kAlwaysShown
                           ? document.rows.empty() || is_anywhere(document, kIdentity[i])
                           : varies(document, kIdentity[i]);
    if (shown) document.shown.push_back(kIdentity[i]);
  }
  for (const std::string_view name :
       {"max_abs_error", "rmse", "max_ulp_error", "bias", "bias_sign_test_p"}) {
    document.shown.push_back(name);
  }
  if (is_anywhere(document, "ratio_to_bound")) document.shown.emplace_back("ratio_to_bound");
  // What the figures beside them leave out, or what spoils them.
  for (const char* name : {"nonfinite_mismatches", "undecided", "overflows"}) {
    if (is_nonzero_anywhere(document, name)) document.shown.emplace_back(name);
  }
  document.shown.emplace_back("status");
  if (is_anywhere(document, "reason")) document.shown.emplace_back("reason");
  document.footer = fmt::format(
      "errors against {} attention on {} inputs; ulps of what the recipe stores; sign tests on one "
      "element a row",
      name(request.reference), name(request.reference_inputs));
}

}  // namespace flashbound
