#include "core/bounds.hpp"
#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/errors.hpp"
#include "core/footprint.hpp"
#include "core/programs.hpp"
#include "experiments/command.hpp"
#include "experiments/count_documents.hpp"
#include "experiments/problem_columns.hpp"
#include "experiments/problem_options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace flashbound {
namespace {

// Up to so many blocks along the two sequence axes the machine answers at once, and up to so many
// it can be waited for.
constexpr Index kMachineBlocksQuick = Index{1} << 20;
constexpr Index kMachineBlocksMax = Index{1} << 24;

// In a table: the row of two methods that agree.
constexpr const char* kBothMethods = "closed-form = machine";

enum class Method { closed_form, machine };

struct Request {
  Problem problem;
  Tile tile;
  NumberFormat dtype = NumberFormat::fp16;
  FootprintKind footprint = FootprintKind::uniform;
  Index stages = 1;
  std::optional<Bytes> sram;
  std::vector<const Algorithm*> algorithms;
  std::vector<Method> methods;
  bool for_people = false;  // a table: two methods that agree share a row
};

// How many blocks the machine has to visit at most along one axis after the other, splits included.
Int128 machine_blocks(const Request& request) {
  const Problem& p = request.problem;
  const Index blocks = Partition{p.seqlen_q, request.tile.block_q}.count() +
                       Partition{p.seqlen_kv, request.tile.block_kv}.count();
  return Int128{blocks} * request.tile.num_splits;
}

Request request_of(const Options& options) {
  Request request;
  request.problem = problem_of(options, std::nullopt, Emptiness::rejected);
  request.tile = tile_of(options);
  const std::string dtype = options.text("dtype");
  const auto format = number_format_named(dtype);
  if (!format) {
    std::string names;
    for (const NumberFormatFacts& entry : kNumberFormats) {
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
    reject("dtype", dtype, "one of " + names);
  }
  request.dtype = *format;
  if (options.text("boundary") != "hbm") reject("boundary", options.text("boundary"), "hbm");
  const std::string footprint = options.text("footprint");
  if (footprint != "uniform" && footprint != "kernel") {
    reject("footprint", footprint, "uniform or kernel");
  }
  if (footprint == "kernel") request.footprint = FootprintKind::kernel;
  constexpr Index kStagesMax = 64;
  request.stages = options.integer("stages", 1, kStagesMax);
  if (request.stages != 1 && footprint == "uniform") {
    reject("stages", std::to_string(request.stages), "1 with footprint = uniform");
  }
  if (options.given("sram")) {
    request.sram = options.bytes("sram");
    if (request.sram->value() < 1) reject("sram", options.text("sram"), "at least 1 byte");
  }
  const std::string algorithm = options.text("algorithm");
  if (algorithm == "all") {
    for (const Algorithm& one : algorithms()) request.algorithms.push_back(&one);
  } else {
    request.algorithms.push_back(&algorithm_named(algorithm));
  }
  const std::string method = options.text("method");
  if (method != "both" && method != "closed-form" && method != "machine") {
    reject("method", method, "both, closed-form or machine");
  }
  if (method != "machine") request.methods.push_back(Method::closed_form);
  if (method != "closed-form") request.methods.push_back(Method::machine);
  for (const char* option : {"record-out", "program-out"}) {
    if (options.given(option) && request.algorithms.size() != 1) {
      throw ConfigError(std::string(option) + ": needs one --algorithm");
    }
  }
  // Both walk the blocks one by one.
  const bool walks = method == "machine" || request.footprint == FootprintKind::kernel;
  if (walks && machine_blocks(request) > kMachineBlocksMax) {
    reject(method == "machine" ? "method" : "footprint",
           method == "machine" ? method : std::string(name(request.footprint)),
           (method == "machine" ? "closed-form" : "uniform") + std::string(" for over ") +
               std::to_string(kMachineBlocksMax) + " blocks");
  }
  request.for_people = format_named(options.text("format")) == Format::table;
  return request;
}

// What does not depend on the algorithm.
Row common_row(const Document& document, const Request& request) {
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
  integer("lower_bound_bytes", compulsory_bound(p, request.dtype).bytes().value());
  integer("flops_useful", flashbound::flops_useful(p).value());
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

void set_counts(const Document& document, Row& row, const IoCount& count, Bytes lower_bound) {
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
  if (lower_bound.value() > 0) {
    set(document, row, "ratio_to_lower_bound", ratio(moved, lower_bound));
  }
  row.extra_json = tensors_json(count);
}

// What has been published about such a problem, evaluated without the constants that the
// publications leave open: for one square head without a mask, in elements a head.
std::string published_json(const Request& request) {
  const Problem& p = request.problem;
  const bool square = p.seqlen_q == p.seqlen_kv && p.head_dim == p.head_dim_v &&
                      mask_name(p) == "none" && !p.block_mask && p.cu_seqlens_q.empty();
  if (!square || !request.sram) return "";
  const Elements sram(request.sram->value() / byte_size(request.dtype));
  if (sram.value() < 1) return "";
  std::string text = ", \"published\": [";
  for (const PublishedBound& bound : published_bounds(p.seqlen_q, p.head_dim, sram)) {
    text += fmt::format(
        "{}{{\"name\": {}, \"expression\": {}, \"domain\": {}, \"in_domain\": {}, "
        "\"elements_without_constant\": {}, \"source\": {}}}",
        text.back() == '[' ? "" : ", ", json_string(bound.name), json_string(bound.expression),
        json_string(bound.domain), bound.in_domain, bound.value, json_string(bound.source));
  }
  return text + "]";
}

struct Verdict {
  const char* status = "ok";
  std::string reason;
};

Verdict verdict_on(const Request& request, Bytes required, bool agree) {
  if (!agree) return {"mismatch", "closed form and machine differ"};
  if (request.sram) {
    if (const auto reason = infeasible_reason(required, *request.sram, request.footprint)) {
      return {"infeasible", *reason};
    }
  }
  return {};
}

void count_algorithm(const Request& request, const Algorithm& algorithm, Outcome& outcome) {
  const Problem& p = request.problem;
  const bool forced = request.methods.size() == 1 && request.methods.front() == Method::machine;
  std::vector<std::pair<Method, IoCount>> counts;
  for (const Method method : request.methods) {
    if (method == Method::closed_form) {
      counts.emplace_back(method, closed_form(algorithm.name, p, request.tile, request.dtype));
    } else if (forced || machine_blocks(request) <= kMachineBlocksQuick) {
      counts.emplace_back(method, count(algorithm.program(), p, request.tile, request.dtype));
    }
  }
  const bool agree = counts.size() < 2 || counts[0].second == counts[1].second;
  const bool skipped = counts.size() < request.methods.size();
  const Bytes lower_bound = compulsory_bound(p, request.dtype).bytes();
  const bool one_row = request.for_people && agree && counts.size() == 2;
  if (one_row) counts.pop_back();
  for (const auto& [method, counted] : counts) {
    Row row = common_row(outcome.document, request);
    set(outcome.document, row, "algorithm", std::string(algorithm.name));
    set(outcome.document, row, "method",
        std::string(one_row                     ? kBothMethods
                    : method == Method::machine ? "machine"
                                                : "closed-form"));
    set_counts(outcome.document, row, counted, lower_bound);
    Bytes required = bytes_of(counted.sram_peak, byte_size(request.dtype));
    if (request.footprint == FootprintKind::kernel) {
      required = footprint(algorithm.program(), p, request.tile, request.dtype, request.footprint,
                           request.stages)
                     .kernel_total();
    }
    set(outcome.document, row, "sram_peak_bytes", required.value());
    row.extra_json += published_json(request);
    Verdict verdict = verdict_on(request, required, agree);
    if (skipped && verdict.reason.empty()) {
      verdict.reason = "too many blocks to run the machine beside it (--method machine insists)";
    }
    set(outcome.document, row, "status", std::string(verdict.status));
    if (!verdict.reason.empty()) set(outcome.document, row, "reason", verdict.reason);
    outcome.document.rows.push_back(std::move(row));
  }
  if (!agree) outcome.exit_code = kFailed;
}

// A table shows how its rows were obtained and why something is not ok only where that varies.
void finish_table(const Request& request, Document& document) {
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
    document.shown.push_back("method");
  }
  if (!all("reason", "")) document.shown.push_back("reason");
}

}  // namespace

Outcome run_count(const Options& options) {
  const Request request = request_of(options);
  Outcome outcome;
  outcome.document = document_with_problem({"algorithm",
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
                                            "sram_peak_elements"});
  outcome.document.shown = {"algorithm",       "hbm_read_bytes",
                            "hbm_write_bytes", "ratio_to_lower_bound",
                            "sram_peak_bytes", "status"};
  for (const Algorithm* algorithm : request.algorithms) {
    if (interrupted) {
      outcome.exit_code = kInterrupted;
      return outcome;
    }
    count_algorithm(request, *algorithm, outcome);
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
