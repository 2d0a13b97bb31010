#include "experiments/curve_request.hpp"

#include "core/errors.hpp"
#include "core/program.hpp"
#include "experiments/model_options.hpp"
#include "experiments/problem_options.hpp"
#include "experiments/sweep.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace flashbound {
namespace {

constexpr std::array<std::pair<std::string_view, LayoutKind>, 3> kLayouts{
    {{"contiguous", LayoutKind::contiguous},
     {"strided", LayoutKind::strided},
     {"padded", LayoutKind::padded}}};

constexpr std::array<std::pair<std::string_view, TraceUnits>, 3> kUnits{
    {{"auto", TraceUnits::automatic}, {"tile", TraceUnits::tiles}, {"line", TraceUnits::lines}}};

template <class Table>
auto choice_of(const Options& options, const char* option, const Table& table) {
  const std::string text = options.text(option);
  std::string names;
  for (const auto& [name, value] : table) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  reject(option, text, "one of " + names);
}

void read_policies(const Options& options, CurveRequest& request) {
  const std::string text = options.text("policy");
  for (const std::string& word : split_commas(text)) {
    if (word == "scratchpad") {
      request.scratchpad = true;
    } else if (const auto policy = replacement_named(word)) {
      request.policies.push_back(*policy);
    } else {
      reject("policy", text, "of scratchpad, lru, fifo, random, plru, opt");
    }
  }
}

void read_capacities(const Options& options, CurveRequest& request) {
  if (!options.given("cache")) return;
  const std::string text = options.text("cache");
  for (const std::string& size : sweep_values("cache", text, RangeOf::sizes)) {
    const Bytes capacity = parse_bytes("cache", size);
    if (capacity.value() < 0 || capacity.value() % request.line_bytes != 0) {
      reject("cache", size, "a multiple of line-size = " + std::to_string(request.line_bytes));
    }
    request.capacities.push_back(capacity);
  }
  std::sort(request.capacities.begin(), request.capacities.end());
}

void read_leave_out(const Options& options, CurveRequest& request) {
  if (!options.given("leave-out")) return;
  request.leave_out = split_commas(options.text("leave-out"));
  const Program program = request.stairs.algorithms.front()->program();
  for (const std::string& left : request.leave_out) {
    std::string names;
    bool known = false;
    for (const TensorDecl& tensor : program.tensors) {
      names += (names.empty() ? "" : ", ") + tensor.name;
      if (tensor.name != left) continue;
      known = true;
      request.bounded = request.bounded && tensor.width == Width::statistic;
    }
    if (!known) reject("leave-out", left, "of " + names);
  }
}

void require_capacities(const Options& options, const CurveRequest& request) {
  for (const Replacement policy : request.policies) {
    if (request.by_distances(policy)) continue;
    if (request.capacities.empty()) {
      throw ConfigError("cache: is required with policy " + std::string(name(policy)) +
                        (request.ways > 0 ? " and ways" : ""));
    }
    if (policy == Replacement::plru && request.ways == 0) {
      throw ConfigError("ways: is required with policy plru, a power of two");
    }
    for (const Bytes capacity : request.capacities) {
      if (capacity.value() == 0) reject("cache", "0", "at least a line with such a policy or ways");
      const CacheLevel level{.name = "cache",
                             .capacity = capacity,
                             .line_bytes = request.line_bytes,
                             .ways = request.ways,
                             .policy = policy};
      validate(std::span<const CacheLevel>(&level, 1));
    }
  }
  if (request.scratchpad && request.policies.empty() && options.given("cache")) {
    reject("cache", options.text("cache"), "absent with policy = scratchpad");
  }
}

}  // namespace

CurveRequest curve_request(const Options& options) {
  CurveRequest request;
  request.stairs = stair_request(options);
  if (request.stairs.algorithms.size() != 1) {
    reject("algorithm", options.text("algorithm"), "one algorithm");
  }
  request.tile = tile_of(options);
  request.points = points_of(options);
  request.ways = options.integer("ways", 0, Index{1} << 28);
  request.line_bytes = static_cast<Index>(options.bytes("line-size").value());
  const bool power_of_two =
      request.line_bytes > 0 && (request.line_bytes & (request.line_bytes - 1)) == 0;
  if (!power_of_two || request.line_bytes > (Index{1} << 20)) {
    reject("line-size", options.text("line-size"), "a power of two from 1 to 1048576 bytes");
  }
  request.layout = choice_of(options, "layout", kLayouts);
  request.units = choice_of(options, "granularity", kUnits);
  read_leave_out(options, request);
  read_policies(options, request);
  read_capacities(options, request);
  require_capacities(options, request);
  return request;
}

std::string_view name(LayoutKind layout) {
  for (const auto& [text, value] : kLayouts) {
    if (value == layout) return text;
  }
  return "";
}

}  // namespace flashbound
