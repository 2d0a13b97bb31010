#include "core/closed_form.hpp"

#include "core/closed_form/head_form.hpp"
#include "core/errors.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace flashbound {
namespace {

struct NamedForm {
  std::string_view algorithm;
  HeadForm (*form)(const Schedule&);
};

constexpr std::array<NamedForm, 13> kForms{{
    {"standard", standard_form},
    {"standard-tiled", standard_tiled_form},
    {"rabe-staats", rabe_staats_form},
    {"flash1", flash1_form},
    {"flash1-charged-start", flash1_charged_start_form},
    {"flash1-skip-first-read", flash1_skip_first_read_form},
    {"flash2", flash2_form},
    {"split-kv", split_kv_form},
    {"small-cache", small_cache_form},
    {"small-cache-spill-both", small_cache_spill_both_form},
    {"standard-backward", standard_backward_form},
    {"flash1-backward", flash1_backward_form},
    {"flash2-backward", flash2_backward_form},
}};

const NamedForm& form_named(std::string_view algorithm) {
  for (const NamedForm& entry : kForms) {
    if (entry.algorithm == algorithm) return entry;
  }
  std::string names;
  for (const NamedForm& entry : kForms) {
    names += (names.empty() ? "" : ", ") + std::string(entry.algorithm);
  }
  reject("algorithm", std::string(algorithm), "one of " + names);
}

// All zero, with every tensor named.
IoCount nothing_counted(const NamedForm& named, NumberFormat dtype) {
  IoCount count;
  for (const TensorForm& tensor : named.form(Schedule{}).tensors) {
    count.tensors.push_back(
        {std::string(tensor.tensor), element_bytes(tensor.width, dtype), {}, {}});
  }
  return count;
}

// Adds `heads` heads; each has the fast memory to itself.
void add_heads(IoCount& total, Int128 heads, const HeadForm& form) {
  for (std::size_t t = 0; t < total.tensors.size(); ++t) {
    total.tensors[t].read += heads * form.tensors[t].read;
    total.tensors[t].written += heads * form.tensors[t].written;
  }
  total.sram_peak = std::max(total.sram_peak, form.sram_peak);
  total.flops += heads * form.flops;
  total.exponentials += heads * form.exponentials;
  total.rescales_at_most += heads * form.rescales_at_most;
}

// Calls visit(heads, form) for each kind of head. Without cu_seqlens all sequences are alike.
template <class Visit>
void for_each_form(const NamedForm& named, const Problem& problem, const Tile& tile,
                   const Visit& visit) {
  const bool packed = !problem.cu_seqlens_q.empty();
  const Index distinct = packed ? sequence_count(problem) : 1;
  const Int128 alike = Int128{problem.num_heads_q} * (packed ? 1 : problem.batch);
  if (alike == 0) return;
  for (Index s = 0; s < distinct; ++s) {
    visit(alike, named.form(schedule_for(problem, tile, sequence(problem, s))));
  }
}

}  // namespace

IoCount closed_form(std::string_view algorithm, const Problem& problem, const Tile& tile,
                    NumberFormat dtype) {
  const NamedForm& named = form_named(algorithm);
  IoCount total = nothing_counted(named, dtype);
  for_each_form(named, problem, tile,
                [&](Int128 heads, const HeadForm& form) { add_heads(total, heads, form); });
  return total;
}

ClosedTraffic closed_traffic(std::string_view algorithm, const Problem& problem, const Tile& tile,
                             NumberFormat dtype) {
  ClosedTraffic total;
  const auto add = [&](Int128 heads, const HeadForm& form) {
    for (const TensorForm& tensor : form.tensors) {
      const Index bytes = element_bytes(tensor.width, dtype);
      total.read += heads * bytes_of(tensor.read, bytes);
      total.written += heads * bytes_of(tensor.written, bytes);
    }
    total.sram_peak = std::max(total.sram_peak, form.sram_peak);
  };
  for_each_form(form_named(algorithm), problem, tile, add);
  return total;
}

}  // namespace flashbound
