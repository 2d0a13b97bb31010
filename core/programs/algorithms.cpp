#include "core/errors.hpp"
#include "core/programs.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace flashbound {
namespace {

constexpr std::array<Algorithm, 13> kAlgorithms{{
    {"standard", "scores, softmax and product as three kernels, each operand streamed once",
     "Dao et al. 2022 (arXiv 2205.14135), Algorithm 0", standard_program},
    {"standard-tiled", "the three kernels with products and softmax in blocks",
     "Dao et al. 2022, Algorithm 0; Milakov & Gimelshein 2018 (arXiv 1805.02867), Algorithm 3",
     standard_tiled_program},
    {"rabe-staats", "summaries of key blocks, kept and merged at the end",
     "Rabe & Staats 2021 (arXiv 2112.05682), section 4", rabe_staats_program},
    {"flash1", "keys outer; O, row_max and row_sum travel at every step",
     "Dao et al. 2022, Algorithm 1, as its Theorem 2 counts it", flash1_program},
    {"flash1-charged-start", "flash1 with the start values of line 2 written by a kernel",
     "Dao et al. 2022, Algorithm 1, line 2 charged", flash1_charged_start_program},
    {"flash1-skip-first-read", "flash1 whose first visit of a query block reads no O",
     "Dao et al. 2022, Figure 2 (3 Tc + 1 passes)", flash1_skip_first_read_program},
    {"flash2", "queries outer, O written once, lse kept",
     "Dao 2023 (arXiv 2307.08691), Algorithm 1", flash2_program},
    {"split-kv", "keys split for decoding, partial results merged by a second kernel",
     "Dao, Haziza, Massa & Sizov 2023, Flash-Decoding", split_kv_program},
    {"small-cache", "for M < d^2: blocked products, each score spilled once",
     "Saha & Ye 2024 (arXiv 2402.07443)", small_cache_program},
    {"small-cache-spill-both", "for M < d^2: small-cache that spills probabilities as well",
     "Saha & Ye 2024 (arXiv 2402.07443), tiled products around a softmax",
     small_cache_spill_both_program},
    {"standard-backward", "backward: gradients from a kept P, each operand streamed once",
     "Dao et al. 2022 (arXiv 2205.14135), Algorithm 3", standard_backward_program, Pass::backward},
    {"flash1-backward", "backward: keys outer; P recomputed, dQ travels at every step",
     "Dao et al. 2022, Algorithm 4", flash1_backward_program, Pass::backward},
    {"flash2-backward", "backward: flash1-backward from lse, with delta computed once",
     "Dao 2023 (arXiv 2307.08691), Algorithm 2", flash2_backward_program, Pass::backward},
}};

// The forward ones come first.
constexpr auto kFirstBackward = [] {
  std::size_t at = 0;
  while (at < kAlgorithms.size() && kAlgorithms[at].pass == Pass::forward) ++at;
  return at;
}();

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

std::span<const Algorithm> algorithms(Pass pass) {
  return pass == Pass::forward ? algorithms().first(kFirstBackward)
                               : algorithms().subspan(kFirstBackward);
}

const Algorithm& algorithm_named(std::string_view name) {
  std::string names;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return algorithm;
    names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  reject("algorithm", std::string(name), "one of " + names);
}

}  // namespace flashbound
