#include "experiments/count_request.hpp"

#include "core/errors.hpp"
#include "experiments/model_options.hpp"
#include "experiments/problem_options.hpp"
#include "experiments/results.hpp"

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
  request.dtype = dtype_of(options);
  require_hbm_boundary(options);
  const FootprintChoice footprint = footprint_of(options);
  request.footprint = footprint.kind;
  request.stages = footprint.stages;
  if (options.given("sram")) request.sram = sram_of(options);
  request.algorithms = algorithms_of(options);
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
