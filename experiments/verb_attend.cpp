#include "core/bounds.hpp"
#include "core/errors.hpp"
#include "experiments/atomic_file.hpp"
#include "experiments/command.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/kernels.hpp"
#include "experiments/npy.hpp"
#include "experiments/npy_inputs.hpp"
#include "experiments/parallel_for.hpp"
#include "experiments/problem_columns.hpp"
#include "experiments/problem_options.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace flashbound {
namespace {

constexpr Index kPrecisionLow = 128;
constexpr Index kPrecisionHigh = Index{1} << 20;

// The four files of a backward pass, of which any gradient may be left out.
struct GradientFiles {
  std::unique_ptr<AtomicFile> q, k, v;
  bool wanted() const { return q || k || v; }
};

std::unique_ptr<AtomicFile> output_file(const Options& options, const char* option) {
  if (!options.given(option)) return nullptr;
  return std::make_unique<AtomicFile>(options.text(option),
                                      options.flag("force") ? Overwrite::yes : Overwrite::no);
}

GradientFiles gradient_files(const Options& options) {
  const bool wanted = options.given("grad-q") || options.given("grad-k") || options.given("grad-v");
  if (wanted && !options.given("grad-o")) throw ConfigError("grad-o: is required by gradients");
  if (!wanted && options.given("grad-o")) {
    reject("grad-o", options.text("grad-o"), "given with grad-q, grad-k or grad-v");
  }
  GradientFiles files;
  files.q = output_file(options, "grad-q");
  files.k = output_file(options, "grad-k");
  files.v = output_file(options, "grad-v");
  return files;
}

Certainty both(const Certainty& a, const Certainty& b) {
  return {a.undecided + b.undecided, std::max(a.precision_bits, b.precision_bits)};
}

// Of what is written alone.
Certainty write(GradientFiles files, const KernelGradients& gradients, NpyType type,
                Outcome& outcome) {
  Certainty certainty;
  const auto write_one = [&](std::unique_ptr<AtomicFile>& file, const Tensor<double>& gradient,
                             const Certainty& its) {
    if (!file) return;
    write_npy(file->stream(), gradient, type);
    outcome.files.push_back(std::move(file));
    certainty = both(certainty, its);
  };
  write_one(files.q, gradients.gradients.q, gradients.q);
  write_one(files.k, gradients.gradients.k, gradients.k);
  write_one(files.v, gradients.gradients.v, gradients.v);
  return certainty;
}

void set_certainty(const Document& document, Row& row, const Certainty& certainty) {
  set(document, row, "undecided", Int128{certainty.undecided});
  set(document, row, "precision_bits", Int128{certainty.precision_bits});
  if (certainty.undecided == 0) return;
  set(document, row, "status", std::string("undecided"));
  set(document, row, "reason",
      std::to_string(certainty.undecided) + " elements are in doubt at the precision cap: NaN");
}

Row summary(const Document& document, const Problem& problem, const std::string& kernel,
            const Attention& result) {
  Row row;
  const auto integer = [&](std::string_view column, Int128 value) {
    set(document, row, column, value);
  };
  set_problem(document, row, problem);
  set(document, row, "kernel", kernel);
  set(document, row, "status", std::string("ok"));

  Index nan_rows = 0;
  const auto width = static_cast<std::size_t>(problem.head_dim_v);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double least = kInfinity;
  double most = -kInfinity;
  for (std::size_t r = 0; r < result.lse.elements.size(); ++r) {
    const double lse = result.lse.elements[r];
    if (std::isfinite(lse)) {
      least = std::min(least, lse);
      most = std::max(most, lse);
    }
    const double* o = result.o.elements.data() + r * width;
    if (std::any_of(o, o + width, [](double x) { return std::isnan(x); })) ++nan_rows;
  }
  // The bound on Q's reads is about the rows that see a key.
  const Int128 seeing =
      compulsory_bound(problem, NumberFormat::fp64).q_read.value() / problem.head_dim;
  integer("rows_without_keys", static_cast<Int128>(result.lse.elements.size()) - seeing);
  integer("nan_rows", nan_rows);
  if (least <= most) {
    set(document, row, "lse_min", least);
    set(document, row, "lse_max", most);
  }
  return row;
}

}  // namespace

Outcome run_attend(const Options& options) {
  const Kernel& kernel = kernel_named(options.text("kernel"));
  Outcome outcome;
  outcome.threads = threads_of(options);
  const NpyInputs files = read_npy_inputs(options);
  const Problem problem = problem_of(options, shape_of(files.inputs), Emptiness::allowed);

  if (options.given("precision-cap") && kernel.name != "exact") {
    reject("precision-cap", options.text("precision-cap"), "given with the kernel exact");
  }
  const KernelSettings settings{
      static_cast<int>(options.integer("precision-cap", kPrecisionLow, kPrecisionHigh))};

  (void)options.text("o");  // required
  auto o_file = output_file(options, "o");
  auto lse_file = output_file(options, "lse-out");
  GradientFiles gradients = gradient_files(options);
  const Tensor<double> grad_o =
      gradients.wanted() ? read_npy_grad_o(options, files) : Tensor<double>{};
  const ParallelFor parallel_for = interruptible(threaded(outcome.threads));
  const Inputs inputs = files.inputs.view();
  const KernelOutputs result = kernel.attend(problem, inputs, settings, parallel_for);
  Certainty certainty = result.certainty;

  write_npy(o_file->stream(), result.attention.o, files.type);
  if (lse_file) {
    // Row statistics keep at least 32 bits.
    const NpyType type = files.type == NpyType::f8 ? NpyType::f8 : NpyType::f4;
    write_npy(lse_file->stream(), result.attention.lse, type);
  }
  if (gradients.wanted()) {
    const KernelGradients backward =
        kernel.gradients(problem, inputs, grad_o.view(), settings, parallel_for);
    certainty = both(certainty, write(std::move(gradients), backward, files.type, outcome));
  }
  outcome.document =
      document_with_problem({"kernel", "status", "reason", "rows_without_keys", "nan_rows",
                             "lse_min", "lse_max", "undecided", "precision_bits"});
  outcome.document.shown = {"kernel",   "batch",     "num_heads_q", "num_heads_kv",
                            "seqlen_q", "seqlen_kv", "mask",        "rows_without_keys",
                            "nan_rows", "lse_min",   "lse_max"};
  if (certainty.precision_bits > 0) {
    outcome.document.shown.insert(outcome.document.shown.end(),
                                  {"precision_bits", "undecided", "status"});
  }
  Row row = summary(outcome.document, problem, std::string(kernel.name), result.attention);
  set_certainty(outcome.document, row, certainty);
  outcome.document.rows.push_back(std::move(row));
  if (lse_file) outcome.files.push_back(std::move(lse_file));
  outcome.files.push_back(std::move(o_file));
  return outcome;
}

}  // namespace flashbound
