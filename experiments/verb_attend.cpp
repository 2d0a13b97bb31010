#include "core/bounds.hpp"
#include "core/errors.hpp"
#include "experiments/atomic_file.hpp"
#include "experiments/command.hpp"
#include "experiments/interrupt.hpp"
#include "experiments/kernels.hpp"
#include "experiments/npy.hpp"
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

struct Files {
  Tensor<double> q, k, v;
  NpyType output_type = NpyType::f8;  // that of Q
};

Files read_inputs(const Options& options) {
  Files files;
  const auto read = [&](const char* name) {
    NpyArray array = read_npy(options.text(name));
    const NpyType type = array.type;
    Tensor<double> tensor = tensor_of(std::move(array), name);
    if (std::string_view(name) == "q") files.output_type = type;
    if (type != files.output_type) {
      reject(std::string(name) + " dtype", flashbound::name(type),
             std::string(flashbound::name(files.output_type)) + " as q is");
    }
    return tensor;
  };
  files.q = read("q");
  files.k = read("k");
  files.v = read("v");
  return files;
}

void require_axis(const char* what, Index value, Index wanted, const char* as) {
  if (value != wanted) {
    reject(what, std::to_string(value), std::to_string(wanted) + " as in " + as);
  }
}

KnownShape shape_of(const Files& files) {
  const auto& q = files.q.shape;
  const auto& k = files.k.shape;
  const auto& v = files.v.shape;
  require_axis("k batch", k[0], q[0], "q");
  require_axis("v batch", v[0], q[0], "q");
  require_axis("v num_heads", v[1], k[1], "k");
  require_axis("v seqlen", v[2], k[2], "k");
  require_axis("k head_dim", k[3], q[3], "q");
  return {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
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
  const Files files = read_inputs(options);
  const Problem problem = problem_of(options, shape_of(files), Emptiness::allowed);

  const Overwrite overwrite = options.flag("force") ? Overwrite::yes : Overwrite::no;
  auto o_file = std::make_unique<AtomicFile>(options.text("o"), overwrite);
  std::unique_ptr<AtomicFile> lse_file;
  if (options.given("lse-out")) {
    lse_file = std::make_unique<AtomicFile>(options.text("lse-out"), overwrite);
  }
  const Inputs inputs{files.q.view(), files.k.view(), files.v.view()};
  const Attention result = kernel.attend(problem, inputs, interruptible(threaded(outcome.threads)));

  write_npy(o_file->stream(), result.o, files.output_type);
  if (lse_file) {
    // Row statistics keep at least 32 bits.
    const NpyType type = files.output_type == NpyType::f8 ? NpyType::f8 : NpyType::f4;
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
