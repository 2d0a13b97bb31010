#include "core/bounds.hpp"
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
#include <utility>

namespace flashbound {
namespace {

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

  const Overwrite overwrite = options.flag("force") ? Overwrite::yes : Overwrite::no;
  auto o_file = std::make_unique<AtomicFile>(options.text("o"), overwrite);
  std::unique_ptr<AtomicFile> lse_file;
  if (options.given("lse-out")) {
    lse_file = std::make_unique<AtomicFile>(options.text("lse-out"), overwrite);
  }
  const Attention result =
      kernel.attend(problem, files.inputs.view(), interruptible(threaded(outcome.threads)));

  write_npy(o_file->stream(), result.o, files.type);
  if (lse_file) {
    // Row statistics keep at least 32 bits.
    const NpyType type = files.type == NpyType::f8 ? NpyType::f8 : NpyType::f4;
    write_npy(lse_file->stream(), result.lse, type);
  }
  outcome.document = document_with_problem(
      {"kernel", "status", "rows_without_keys", "nan_rows", "lse_min", "lse_max"});
  outcome.document.shown = {"kernel",   "batch",     "num_heads_q", "num_heads_kv",
                            "seqlen_q", "seqlen_kv", "mask",        "rows_without_keys",
                            "nan_rows", "lse_min",   "lse_max"};
  outcome.document.rows.push_back(
      summary(outcome.document, problem, std::string(kernel.name), result));
  if (lse_file) outcome.files.push_back(std::move(lse_file));
  outcome.files.push_back(std::move(o_file));
  return outcome;
}

}  // namespace flashbound
