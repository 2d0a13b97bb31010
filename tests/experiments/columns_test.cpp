// Columns are a contract: appended, never renamed or reordered.
#include "experiments/results.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace flashbound {
namespace {

// In the order in which they were published. New ones go to the end.
constexpr std::string_view kPublished[] = {
    "algorithm",
    "dtype",
    "batch",
    "num_heads_q",
    "num_heads_kv",
    "seqlen_q",
    "seqlen_kv",
    "head_dim",
    "head_dim_v",
    "mask",
    "block_q",
    "block_kv",
    "num_splits",
    "kernel",
    "hardware",
    "policy",
    "line_bytes",
    "cache_bytes",
    "boundary",
    "sram_bytes",
    "sram_peak_bytes",
    "hbm_read_bytes",
    "hbm_write_bytes",
    "hbm_bytes",
    "flops",
    "arithmetic_intensity_flops_per_byte",
    "lower_bound_bytes",
    "ratio_to_lower_bound",
    "status",
    "reason",
    "panel",
    "window_left",
    "window_right",
    "footprint",
    "method",
    "flops_useful",
    "exponentials",
    "rescales_at_most",
    "sram_peak_elements",
    "problem",
    "check",
    "quantity",
    "worst_difference",
    "allowed_difference",
    "kind",
    "name",
    "title",
    "source",
    "lse_min",
    "lse_max",
    "rows_without_keys",
    "nan_rows",
    "sequences",
    "block_mask",
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
    "undecided",
    "precision_bits",
    "claim",
    "statement",
    "published",
    "verdict",
    "argument",
    "compulsory_bytes",
    "segment_bound_bytes",
    "product_bound_bytes",
    "point",
    "ways",
    "layout",
    "leave_out",
};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

TEST_SUITE("experiments.results") {
  TEST_CASE("published columns keep their names and their order") {
    REQUIRE(all_columns().size() >= std::size(kPublished));
    for (std::size_t c = 0; c < std::size(kPublished); ++c) {
      CHECK(std::string(all_columns()[c].name) == std::string(kPublished[c]));
    }
  }

  TEST_CASE("column names are unique and in snake_case and say their unit") {
    std::set<std::string_view> seen;
    for (const Column& column : all_columns()) {
      CAPTURE(std::string(column.name));
      CHECK(seen.insert(column.name).second);
      CHECK(!column.doc.empty());
      CHECK(std::all_of(column.name.begin(), column.name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      }));
      CHECK(column.name.front() != '_');
      CHECK(column.name.back() != '_');
      CHECK((column.unit == "bytes") == ends_with(column.name, "_bytes"));
      CHECK((column.unit == "elements") == ends_with(column.name, "_elements"));
    }
  }

  TEST_CASE("columns are given in their order whatever order they are asked in") {
    constexpr std::string_view kAsked[] = {"flops", "status", "algorithm"};
    const std::vector<const Column*> columns = columns_named(kAsked);
    REQUIRE(columns.size() == 3);
    CHECK(columns[0]->name == "algorithm");
    CHECK(columns[1]->name == "flops");
    CHECK(columns[2]->name == "status");
    CHECK(columns_named({}).empty());
  }
}

}  // namespace
}  // namespace flashbound
