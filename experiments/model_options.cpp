#include "experiments/model_options.hpp"

#include "core/errors.hpp"

#include <span>
#include <string>

namespace flashbound {

NumberFormat dtype_of(const Options& options) {
  const std::string dtype = options.text("dtype");
  if (const auto format = number_format_named(dtype)) return *format;
  std::string names;
  for (const NumberFormatFacts& entry : kNumberFormats) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  reject("dtype", dtype, "one of " + names);
}

void require_hbm_boundary(const Options& options) {
  if (options.text("boundary") != "hbm") reject("boundary", options.text("boundary"), "hbm");
}

FootprintChoice footprint_of(const Options& options) {
  const std::string footprint = options.text("footprint");
  if (footprint != "uniform" && footprint != "kernel") {
    reject("footprint", footprint, "uniform or kernel");
  }
  FootprintChoice choice;
  if (footprint == "kernel") choice.kind = FootprintKind::kernel;
  constexpr Index kStagesMax = 64;
  choice.stages = options.integer("stages", 1, kStagesMax);
  if (choice.stages != 1 && footprint == "uniform") {
    reject("stages", std::to_string(choice.stages), "1 with footprint = uniform");
  }
  return choice;
}

Bytes sram_of(const Options& options) {
  const Bytes sram = options.bytes("sram");
  if (sram.value() < 1) reject("sram", options.text("sram"), "at least 1 byte");
  return sram;
}

std::vector<const Algorithm*> algorithms_of(const Options& options, bool many) {
  std::vector<const Algorithm*> chosen;
  const auto add_all = [&](std::span<const Algorithm> all) {
    for (const Algorithm& one : all) chosen.push_back(&one);
  };
  const std::string text = options.text("algorithm");
  for (const std::string& word : many ? split_commas(text) : std::vector<std::string>{text}) {
    if (word == "all") {
      add_all(algorithms());
    } else if (word == "forward" || word == "backward") {
      add_all(algorithms(word == "forward" ? Pass::forward : Pass::backward));
    } else {
      chosen.push_back(&algorithm_named(word));
    }
  }
  return chosen;
}

}  // namespace flashbound
