#include "experiments/verify_checks.hpp"

#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/exact.hpp"
#include "core/lower_bound.hpp"
#include "core/numeric.hpp"
#include "core/record.hpp"
#include "sim/trace.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace flashbound {
namespace {

// Whole shapes are counted as 16-bit inputs, for which row statistics are wider than the data.
constexpr NumberFormat kCountedDtype = NumberFormat::bf16;

// What an exact check reports while nothing differs.
constexpr const char* kEveryCount = "every count";

// Keeps the largest difference and what it is the difference of.
void compare(VerifyCheck& check, const std::string& quantity, Int128 a, Int128 b) {
  // Subtracted before it is converted: a double can hide a difference of one in a large count.
  const double difference = std::abs(static_cast<double>(checked_sub(a, b)));
  if (a != b) {
    check.passed = false;
    check.share = std::numeric_limits<double>::infinity();
  }
  if (a != b && difference >= check.worst_difference) {
    check.quantity = quantity;
    check.worst_difference = difference;
  }
}

VerifyCheck begin_check(const std::string& problem, const std::string& check,
                        const Algorithm& algorithm) {
  VerifyCheck result;
  result.problem = problem;
  result.check = check;
  result.algorithm = algorithm.name;
  result.passed = true;
  return result;
}

// Keeps the element whose difference is the largest share of what is allowed. Equal infinities and
// NaN on both sides agree. An infinite allowance (an overflow that the bound foresees) would allow
// anything and so passes nothing.
void compare(VerifyCheck& check, const std::string& quantity, double computed, double reference,
             double allowed) {
  const bool same = computed == reference || (std::isnan(computed) && std::isnan(reference));
  const double difference = same ? 0 : std::abs(computed - reference);
  const bool within = same || (std::isfinite(allowed) && difference <= allowed);
  if (!within) check.passed = false;
  const double share = same     ? 0
                       : within ? difference / allowed
                                : std::numeric_limits<double>::infinity();
  if (check.quantity.empty() || share > check.share) {
    check.share = share;
    check.quantity = quantity;
    check.worst_difference = difference;
    check.allowed_difference = allowed;
  }
}

}  // namespace

VerifyCheck worse(const VerifyCheck& a, const VerifyCheck& b) {
  VerifyCheck result = b.share > a.share ? b : a;
  result.passed = a.passed && b.passed;
  return result;
}

VerifyCheck check_closed_form(const std::string& name, const Algorithm& algorithm,
                              const Problem& problem, const Tile& tile) {
  VerifyCheck check = begin_check(name, "count machine = closed form", algorithm);
  check.quantity = kEveryCount;
  const IoCount machine = count(algorithm.program(), problem, tile, kCountedDtype);
  const IoCount form = closed_form(algorithm.name, problem, tile, kCountedDtype);
  check.passed = machine == form;
  for (std::size_t t = 0; t < std::min(machine.tensors.size(), form.tensors.size()); ++t) {
    const std::string& tensor = machine.tensors[t].tensor;
    compare(check, tensor + " read", machine.tensors[t].read.value(), form.tensors[t].read.value());
    compare(check, tensor + " written", machine.tensors[t].written.value(),
            form.tensors[t].written.value());
  }
  compare(check, "residency", machine.sram_peak.value(), form.sram_peak.value());
  compare(check, "flops", machine.flops.value(), form.flops.value());
  compare(check, "exponentials", machine.exponentials.value(), form.exponentials.value());
  compare(check, "rescales", machine.rescales_at_most.value(), form.rescales_at_most.value());
  return check;
}

VerifyCheck check_trace(const std::string& name, const Algorithm& algorithm, const Problem& problem,
                        const Tile& tile) {
  VerifyCheck check = begin_check(name, "trace = count machine", algorithm);
  check.quantity = kEveryCount;
  constexpr Index kLineBytes = 64;
  const Program program = algorithm.program();
  const Layout where =
      layout(program, problem, tile, kCountedDtype, LayoutKind::contiguous, kLineBytes);
  std::vector<Bytes> read(program.tensors.size());
  std::vector<Bytes> written(program.tensors.size());
  trace_head(program, problem, tile, where, 0, 0, Granularity::element, [&](const AccessRun& run) {
    const auto tensor = static_cast<std::size_t>(run.tensor);
    (run.write ? written : read)[tensor] += Bytes(Int128{run.units} * run.unit_bytes);
  });
  const Schedule schedule = schedule_for(problem, tile, sequence(problem, 0));
  const IoCount machine = count_head(program, schedule, kCountedDtype);
  for (std::size_t t = 0; t < machine.tensors.size(); ++t) {
    const TensorTraffic& counted = machine.tensors[t];
    compare(check, counted.tensor + " read bytes", read[t].value(), counted.read_bytes().value());
    compare(check, counted.tensor + " write bytes", written[t].value(),
            counted.write_bytes().value());
  }
  return check;
}

VerifyCheck check_lower_bound(const std::string& name, const Algorithm& algorithm,
                              const Problem& problem, const Tile& tile) {
  VerifyCheck check = begin_check(name, "count >= lower bound", algorithm);
  check.quantity = "bytes below it";
  const IoCount counted = count(algorithm.program(), problem, tile, kCountedDtype);
  const Bytes tiles = bytes_of(counted.sram_peak, byte_size(kCountedDtype));
  const LowerBound bound = lower_bound(problem, kCountedDtype, algorithm.pass, tiles);
  const auto at_least = [&](const char* what, Bytes moved, Bytes least) {
    if (moved < least) compare(check, what, moved.value(), least.value());
  };
  at_least("bytes read", hbm_read_bytes(counted), bound.read_bytes());
  at_least("bytes written", hbm_write_bytes(counted), bound.write_bytes());
  at_least("bytes moved", hbm_bytes(counted), bound.bytes());
  return check;
}

VerifyCheck check_record(const std::string& name, const Algorithm& algorithm,
                         const Problem& problem, const Tile& tile) {
  VerifyCheck check = begin_check(name, "record log = count machine", algorithm);
  check.quantity = kEveryCount;
  const Program program = algorithm.program();
  const Schedule schedule = schedule_for(problem, tile, sequence(problem, 0));
  std::map<std::string, Bytes> read;
  std::map<std::string, Bytes> written;
  Elements peak;
  record(program, schedule, kCountedDtype, [&](const Event& event) {
    if (event.statement->op == Op::load) read[event.tensor->name] += event.bytes;
    if (event.statement->op == Op::store) written[event.tensor->name] += event.bytes;
    peak = std::max(peak, event.resident);
  });
  const IoCount machine = count_head(program, schedule, kCountedDtype);
  for (const TensorTraffic& tensor : machine.tensors) {
    compare(check, tensor.tensor + " read", read[tensor.tensor].value(),
            tensor.read_bytes().value());
    compare(check, tensor.tensor + " written", written[tensor.tensor].value(),
            tensor.write_bytes().value());
  }
  compare(check, "residency", peak.value(), machine.sram_peak.value());
  return check;
}

NumericTarget numeric_target(const std::string& name, const Problem& problem, const Tile& tile,
                             const Inputs& inputs, const Sequence& sequence, Index head,
                             const ParallelFor& parallel_for) {
  NumericTarget target;
  target.name = name;
  target.problem = &problem;
  target.tile = tile;
  target.inputs = inputs;
  target.sequence = sequence;
  target.head = head;
  target.reference = reference_head(problem, inputs, sequence, head, parallel_for);
  target.conditions = head_conditions(problem, inputs, sequence, head, parallel_for);
  target.reference_bound = error_bound(target.conditions, reference_rounding());
  return target;
}

VerifyCheck check_numeric(const NumericTarget& target, const Algorithm& algorithm,
                          NumberFormat format) {
  VerifyCheck check =
      begin_check(target.name, std::string(name(format)) + " tiles = reference", algorithm);
  const NumericRun run = run_numeric(algorithm.program(), *target.problem, target.tile,
                                     target.inputs, target.sequence, target.head, format);
  const Schedule schedule = schedule_for(*target.problem, target.tile, target.sequence);
  const ErrorBound bound = error_bound(target.conditions, program_rounding(format, schedule));
  const HeadTensor& o = *run.find("o");
  for (Index row = 0; row < o.rows; ++row) {
    for (Index col = 0; col < o.cols; ++col) {
      compare(check, "o", o(row, col), target.reference.o(row, col),
              bound.o(row, col) + target.reference_bound.o(row, col));
    }
    if (const std::optional<double> lse = run.lse(row)) {
      compare(check, "lse", *lse, target.reference.lse(row),
              bound.lse(row) + target.reference_bound.lse(row));
    }
  }
  return check;
}

bool affordable_exactly(const Problem& problem) {
  // About 12 ns for each term of a product on one core: 2 seconds.
  constexpr Int128 kTermsMax = 150'000'000;
  Problem head = problem;
  head.batch = head.num_heads_q = head.num_heads_kv = 1;
  return visible_pairs(head).value() * (head.head_dim + head.head_dim_v) <= kTermsMax;
}

VerifyCheck check_exact(const NumericTarget& target) {
  VerifyCheck check;
  check.problem = target.name;
  check.check = "fp64 reference = exact";
  check.algorithm = "reference";
  check.passed = true;
  const ExactHead exact = exact_head(*target.problem, target.inputs, target.sequence, target.head);
  const auto allowed = [](double bound, double value) {
    return bound + unit_roundoff(NumberFormat::fp64) * std::abs(value);  // its last rounding
  };
  for (Index row = 0; row < exact.o.rows(); ++row) {
    for (Index col = 0; col < exact.o.cols(); ++col) {
      const double value = exact.o(row, col);
      compare(check, "o", target.reference.o(row, col), value,
              allowed(target.reference_bound.o(row, col), value));
    }
    compare(check, "lse", target.reference.lse(row), exact.lse(row),
            allowed(target.reference_bound.lse(row), exact.lse(row)));
  }
  if (!exact.undecided_o.empty() || !exact.undecided_lse.empty()) check.passed = false;
  return check;
}

}  // namespace flashbound
