#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/footprint.hpp"
#include "core/lower_bound.hpp"
#include "core/programs.hpp"
#include "experiments/command.hpp"
#include "experiments/count_documents.hpp"
#include "experiments/count_request.hpp"
#include "experiments/problem_columns.hpp"
#include "experiments/problem_options.hpp"
#include "experiments/published.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace flashbound {
namespace {

// Up to so many blocks the machine answers at once and runs beside the closed form.
constexpr Index kMachineBlocksQuick = Index{1} << 20;

// In a table: the row of two methods that agree.
constexpr const char* kBothMethods = "closed-form = machine";

// What does not depend on the algorithm but for its pass.
Row common_row(const Document& document, const CountRequest& request, Pass pass) {
  Row row;
  const Problem& p = request.problem;
  const auto integer = [&](std::string_view column, Int128 value) {
    set(document, row, column, value);
  };
  set_problem(document, row, p);
  set(document, row, "dtype", std::string(name(request.dtype)));
  integer("block_q", request.tile.block_q);
  integer("block_kv", request.tile.block_kv);
  integer("num_splits", request.tile.num_splits);
  integer("panel", request.tile.panel);
  set(document, row, "policy", std::string("scratchpad"));
  set(document, row, "boundary", std::string("hbm"));
  set(document, row, "footprint", std::string(name(request.footprint)));
  if (request.sram) integer("sram_bytes", request.sram->value());
  integer("flops_useful", flashbound::flops_useful(p, pass).value());
  return row;
}

std::string tensors_json(const IoCount& count) {
  std::string text = "\"tensors\": {";
  for (const TensorTraffic& t : count.tensors) {
    text += fmt::format(
        "{}{}: {{\"read_bytes\": {}, \"write_bytes\": {}, \"read_elements\": {}, "
        "\"write_elements\": {}}}",
        text.back() == '{' ? "" : ", ", json_string(t.tensor), to_string(t.read_bytes()),
        to_string(t.write_bytes()), to_string(t.read), to_string(t.written));
  }
  return text + "}";
}

void set_counts(const Document& document, Row& row, const IoCount& count,
                const LowerBound& lower_bound) {
  const auto integer = [&](std::string_view column, Int128 value) {
    set(document, row, column, value);
  };
  const Bytes moved = hbm_bytes(count);
  integer("hbm_read_bytes", hbm_read_bytes(count).value());
  integer("hbm_write_bytes", hbm_write_bytes(count).value());
  integer("hbm_bytes", moved.value());
  integer("flops", count.flops.value());
  integer("exponentials", count.exponentials.value());
  integer("rescales_at_most", count.rescales_at_most.value());
  integer("sram_peak_elements", count.sram_peak.value());
  if (moved.value() > 0) {
    set(document, row, "arithmetic_intensity_flops_per_byte",
        static_cast<double>(count.flops.value()) / static_cast<double>(moved.value()));
  }
  integer("lower_bound_bytes", lower_bound.bytes().value());
  integer("compulsory_bytes", lower_bound.compulsory.bytes().value());
  integer("segment_bound_bytes", lower_bound.segment.read.value());
  integer("product_bound_bytes", lower_bound.product.moved.value());
  if (lower_bound.bytes().value() > 0) {
    set(document, row, "ratio_to_lower_bound", ratio(moved, lower_bound.bytes()));
  }
  row.extra_json = tensors_json(count);
}

struct Verdict {
  const char* status = "ok";
  std::string reason;
};

Verdict verdict_on(const CountRequest& request, Bytes required, bool agree) {
  if (!agree) return {"mismatch", "closed form and machine differ"};
  if (request.sram) {
    if (const auto reason = infeasible_reason(required, *request.sram, request.footprint)) {
      return {"infeasible", *reason};
    }
  }
  return {};
}

// Returns whether all methods agree.
bool count_algorithm(const CountRequest& request, const Algorithm& algorithm, Document& document) {
  const Problem& p = request.problem;
  const bool forced =
      request.methods.size() == 1 && request.methods.front() == CountMethod::machine;
  std::vector<std::pair<CountMethod, IoCount>> counts;
  for (const CountMethod method : request.methods) {
    if (method == CountMethod::closed_form) {
      counts.emplace_back(method, closed_form(algorithm.name, p, request.tile, request.dtype));
    } else if (forced || machine_blocks(request) <= kMachineBlocksQuick) {
      counts.emplace_back(method, count(algorithm.program(), p, request.tile, request.dtype));
    }
  }
  const bool agree = counts.size() < 2 || counts[0].second == counts[1].second;
  const bool skipped = counts.size() < request.methods.size();
  const bool one_row = request.for_people && agree && counts.size() == 2;
  if (one_row) counts.pop_back();
  for (const auto& [method, counted] : counts) {
    Row row = common_row(document, request, algorithm.pass);
    set(document, row, "algorithm", std::string(algorithm.name));
    set(document, row, "method",
        std::string(one_row                          ? kBothMethods
                    : method == CountMethod::machine ? "machine"
                                                     : "closed-form"));
    Bytes required = bytes_of(counted.sram_peak, byte_size(request.dtype));
    // In the given size, or where the row needs more, or nothing is given, in as many words as it
    // has.
    const Bytes memory = std::max(request.sram.value_or(Bytes{}), required);
    set_counts(document, row, counted, lower_bound(p, request.dtype, algorithm.pass, memory));
    if (request.footprint == FootprintKind::kernel) {
      required = footprint(algorithm.program(), p, request.tile, request.dtype, request.footprint,
                           request.stages)
                     .kernel_total();
    }
    set(document, row, "sram_peak_bytes", required.value());
    if (algorithm.pass == Pass::forward && request.sram) {
      row.extra_json += published_json(p, request.dtype, *request.sram);
    }
    Verdict verdict = verdict_on(request, required, agree);
    if (skipped && verdict.reason.empty()) {
      verdict.reason = "too many blocks to run the machine beside it (--method machine insists)";
    }
    set(document, row, "status", std::string(verdict.status));
    if (!verdict.reason.empty()) set(document, row, "reason", verdict.reason);
    document.rows.push_back(std::move(row));
  }
  return agree;
}

// A table shows how its rows were obtained and why something is not ok only where that varies.
void finish_table(const CountRequest& request, Document& document) {
  if (!request.for_people) return;
  const std::vector<const Column*>& columns = document.columns;
  const auto cell = [&](const Row& row, std::string_view name) {
    const auto column = std::find_if(columns.begin(), columns.end(),
                                     [&](const Column* c) { return c->name == name; });
    return readable(row.cells[static_cast<std::size_t>(column - columns.begin())]);
  };
  const auto all = [&](std::string_view name, const std::string& value) {
    return std::all_of(document.rows.begin(), document.rows.end(),
                       [&](const Row& row) { return cell(row, name) == value; });
  };
  if (all("method", kBothMethods)) {
    document.footer = "every row: closed form = count machine";
  } else {
    document.shown.emplace_back("method");
  }
  if (!all("reason", "")) document.shown.emplace_back("reason");
}

}  // namespace

Document count_document() {
  Document document = document_with_problem({"algorithm",
                                             "dtype",
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
                                             "footprint",
                                             "method",
                                             "flops_useful",
                                             "exponentials",
                                             "rescales_at_most",
                                             "sram_peak_elements",
                                             "compulsory_bytes",
                                             "segment_bound_bytes",
                                             "product_bound_bytes"});
  document.shown = {"algorithm",       "hbm_read_bytes", "hbm_write_bytes", "ratio_to_lower_bound",
                    "sram_peak_bytes", "status"};
  return document;
}

bool append_counts(const Options& options, Document& document) {
  const CountRequest request = count_request(options);
  bool agree = true;
  for (const Algorithm* algorithm : request.algorithms) {
    agree = count_algorithm(request, *algorithm, document) && agree;
  }
  return agree;
}

Outcome run_count(const Options& options) {
  const CountRequest request = count_request(options);
  Outcome outcome;
  outcome.document = count_document();
  for (const Algorithm* algorithm : request.algorithms) {
    if (interrupted) {
      outcome.exit_code = kInterrupted;
      return outcome;
    }
    if (!count_algorithm(request, *algorithm, outcome.document)) outcome.exit_code = kFailed;
  }
  if (interrupted) outcome.exit_code = kInterrupted;
  finish_table(request, outcome.document);
  if (request.algorithms.size() == 1) {
    write_count_documents(options, *request.algorithms.front(), request.problem, request.tile,
                          request.dtype, outcome);
  }
  return outcome;
}

}  // namespace flashbound
