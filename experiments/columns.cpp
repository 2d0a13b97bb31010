#include "experiments/results.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace flashbound {
namespace {

constexpr auto kColumns = std::to_array<Column>({
    {"algorithm", "", "algorithm that was counted or run"},
    {"dtype", "", "number format of Q, K, V and O"},
    {"batch", "1", "sequences of the batch"},
    {"num_heads_q", "1", "query heads"},
    {"num_heads_kv", "1", "key and value heads"},
    {"seqlen_q", "1", "queries; with cu_seqlens, of all packed sequences together"},
    {"seqlen_kv", "1", "keys"},
    {"head_dim", "1", "columns of Q and K"},
    {"head_dim_v", "1", "columns of V and O"},
    {"mask", "", "none, causal or window"},
    {"block_q", "1", "queries in a tile"},
    {"block_kv", "1", "keys in a tile"},
    {"num_splits", "1", "parts of the keys (split-kv)"},
    {"kernel", "", "who computed"},
    {"hardware", "", "hardware description; missing where none is used"},
    {"policy", "", "who decides what stays in fast memory: scratchpad = the program's own tiles"},
    {"line_bytes", "bytes", "line size of a cache; missing for a scratchpad"},
    {"cache_bytes", "bytes", "capacity of a cache beside the tiles; missing for a scratchpad"},
    {"boundary", "", "between which memories the bytes moved: hbm = HBM and one fast memory"},
    {"sram_bytes", "bytes", "capacity of the fast memory; missing: not limited"},
    {"sram_peak_bytes", "bytes", "fast memory that the algorithm needs, by its footprint"},
    {"hbm_read_bytes", "bytes", "into fast memory"},
    {"hbm_write_bytes", "bytes", "out of fast memory"},
    {"hbm_bytes", "bytes", "read and written"},
    {"flops", "flops", "of the matrix products of visited tiles"},
    {"arithmetic_intensity_flops_per_byte", "flops/byte", "flops / hbm_bytes"},
    {"lower_bound_bytes", "bytes",
     "no algorithm of the class moves fewer in sram_bytes, or in what the row needs if that is "
     "more"},
    {"ratio_to_lower_bound", "1", "hbm_bytes / lower_bound_bytes; missing where that is 0"},
    {"status", "", "ok, pass, fail, mismatch or infeasible"},
    {"reason", "", "why the status is not ok or pass"},
    {"panel", "1", "contraction panel (small-cache)"},
    {"window_left", "1", "keys seen before the diagonal; -1 = all"},
    {"window_right", "1", "keys seen after the diagonal; -1 = all"},
    {"footprint", "", "definition of sram_peak_bytes: uniform or kernel"},
    {"method", "", "how the row was obtained: closed-form or machine"},
    {"flops_useful", "flops", "of the matrix products of visible pairs alone"},
    {"exponentials", "1", "of visited tiles and rescale factors"},
    {"rescales_at_most", "1", "rows whose maximum might move: an upper bound, data decides"},
    {"sram_peak_elements", "elements", "numbers resident together, at most"},
    {"problem", "", "name of the problem that was checked"},
    {"check", "", "what agrees with what"},
    {"quantity", "", "where the two come nearest to the allowed difference, or exceed it"},
    {"worst_difference", "1", "there; elements for traffic and residency of counts"},
    {"allowed_difference", "1", "there: 0 for counts, derived error bounds for outputs"},
    {"kind", "", "algorithm, kernel, format, recipe, distribution, problem or claim"},
    {"name", "", "as options take it"},
    {"title", "", "what it is"},
    {"source", "", "where it was published"},
    {"lse_min", "1", "smallest finite lse"},
    {"lse_max", "1", "largest lse"},
    {"rows_without_keys", "1",
     "query rows, of all heads, that the mask shows no key: O = 0, lse = -inf or the sink"},
    {"nan_rows", "1", "query rows whose output holds NaN"},
    {"sequences", "1", "sequences: those of the batch, or the packed ones of cu_seqlens"},
    {"block_mask", "", "cells of the block mask and how many are visible; empty: none"},
    {"recipe", "", "arithmetic of the run, by its name"},
    {"distribution", "", "of the inputs; missing: they came from files"},
    {"seed", "1", "of inputs, rotation and stochastic rounding"},
    {"reference", "", "what errors are measured against: exact or fp64"},
    {"reference_inputs", "", "what it was given: rounded inputs, as the run, or unrounded ones"},
    {"elements", "1", "of O that were compared, over all heads and sequences"},
    {"max_abs_error", "1", "largest |O - reference| where both are finite"},
    {"max_relative_error", "1", "largest |O - reference| / |reference| where that is not 0"},
    {"rmse", "1", "root of the mean squared error"},
    {"max_ulp_error", "1", "largest error in ulps of the recipe's stored format"},
    {"bias", "1", "mean of O - reference"},
    {"bias_sign_test_p", "1", "sign test of these errors' signs, one element a row"},
    {"magnitude_bias", "1", "mean of (O - reference) sign(reference): positive is outward"},
    {"magnitude_bias_sign_test_p", "1",
     "sign test of outward and inward errors, one element a row"},
    {"lse_max_abs_error", "1", "largest |lse - reference|; missing where no lse is kept"},
    {"rescales", "1", "updates of a row's maximum that multiplied its accumulators"},
    {"rescales_skipped", "1", "updates of a row's maximum that left them alone"},
    {"overflows", "1", "weights, maxima, operands, stored results beyond the format; not sums"},
    {"underflows", "1", "weights, operands, stored results rounded to zero; not sums"},
    {"nonfinite_mismatches", "1", "elements finite on one side only, or infinities of two signs"},
    {"bound_max", "1", "largest a-priori error bound of an element; missing: none is known"},
    {"ratio_to_bound", "1", "largest error / bound of an element: at most 1 where the bound holds"},
    {"undecided", "1", "elements that the exact reference left open, which are not compared"},
    {"precision_bits", "bits",
     "that the hardest element needed to be certified; 0 = not certified"},
    {"claim", "", "id of a published claim"},
    {"statement", "", "what was published"},
    {"published", "", "its figures"},
    {"verdict", "", "confirmed, refuted, qualified or not measurable here"},
    {"argument", "", "why"},
    {"compulsory_bytes", "bytes", "inputs read once and outputs written once"},
    {"segment_bound_bytes", "bytes",
     "that must be read in that fast memory, by segments (core/segment_bound.hpp); 0: says "
     "nothing"},
    {"product_bound_bytes", "bytes",
     "that must be read and written there, by products of scores (same page); 0: says nothing"},
    {"point", "1", "number of a sweep's point, from 0"},
    {"ways", "1", "ways of the cache; missing: fully associative"},
    {"layout", "", "of heads in memory"},
    {"leave_out", "", "tensors that were not traced; empty: all were"},
});

}  // namespace

std::span<const Column> all_columns() { return kColumns; }

std::vector<const Column*> columns_named(std::span<const std::string_view> names) {
  std::vector<const Column*> columns;
  for (const Column& column : kColumns) {
    if (std::find(names.begin(), names.end(), column.name) != names.end()) {
      columns.push_back(&column);
    }
  }
  if (columns.size() != names.size()) {
    std::fputs("flashbound: a verb names a column that does not exist\n", stderr);
    std::abort();
  }
  return columns;
}

}  // namespace flashbound
