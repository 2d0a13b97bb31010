#include "experiments/count_request.hpp"

#include "core/errors.hpp"
#include "experiments/problem_options.hpp"
#include "experiments/results.hpp"

#include <span>
#include <string>

namespace flashbound {
namespace {

// Up to so many blocks, walked one by one, an answer can be waited for.
constexpr Index kMachineBlocksMax = Index{1} << 24;

}  // namespace

Int128 machine_blocks(const CountRequest& request) {
  const Problem& p = request.problem;
  const Index blocks = Partition{p.seqlen_q, request.tile.block_q}.count() +
                       Partition{p.seqlen_kv, request.tile.block_kv}.count();
  return Int128{blocks} * request.tile.num_splits;
}

CountRequest count_request(const Options& options) {
  CountRequest request;
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
  const auto add_all = [&](std::span<const Algorithm> all) {
    for (const Algorithm& one : all) request.algorithms.push_back(&one);
  };
  if (algorithm == "all") {
    add_all(algorithms());
  } else if (algorithm == "forward" || algorithm == "backward") {
    add_all(algorithms(algorithm == "forward" ? Pass::forward : Pass::backward));
  } else {
    request.algorithms.push_back(&algorithm_named(algorithm));
  }
  const std::string method = options.text("method");
  if (method != "both" && method != "closed-form" && method != "machine") {
    reject("method", method, "both, closed-form or machine");
  }
  if (method != "machine") request.methods.push_back(CountMethod::closed_form);
  if (method != "closed-form") request.methods.push_back(CountMethod::machine);
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

}  // namespace flashbound
