#include "experiments/numerics/golden.hpp"

#include "experiments/numerics/claims.hpp"

#include <array>

namespace flashbound {
namespace {

constexpr std::array kClaims{
    NumericClaim{
        "GO-01", "Golden et al. 2024 (arXiv 2405.02803), abstract",
        "Flash Attention sees roughly an order of magnitude more numeric deviation than baseline "
        "attention at bf16 in an isolated forward pass, both against fp64.",
        "about 10x the largest deviation; sequence length and head dimension are not given",
        isolated_forward},
    NumericClaim{"GO-02", "Golden et al. 2024 (arXiv 2405.02803), microbenchmark",
                 "The deviation between Flash Attention and baseline attention falls as mantissa "
                 "bits are added.",
                 "falls from bf16 to fp16 to fp32 to fp64", mantissa_sweep},
    NumericClaim{"GO-03", "Golden et al. 2024 (arXiv 2405.02803), microbenchmark",
                 "Flash Attention's deviation grows with the sequence length at a fixed tile.",
                 "its maximum, mean and standard deviation all grow", length_sweep},
    NumericClaim{"GO-04", "Golden et al. 2024 (arXiv 2405.02803), microbenchmark",
                 "Larger tiles have smaller deviation.", "deviation falls as the tile's area grows",
                 block_area},
    NumericClaim{"GO-05", "Golden et al. 2024 (arXiv 2405.02803), microbenchmark",
                 "Swapping the two block sizes increases deviation; of square tiles it has no "
                 "effect.",
                 "", swapped_block_sizes},
};

}  // namespace

std::span<const NumericClaim> golden_claims() { return kClaims; }

Comparison every_operation(const FloatFormat& format) {
  const Recipe recipe = uniform_recipe("all-" + to_string(format), format);
  return {"every operation", "flash1", recipe, recipe};
}

Comparison every_result(const FloatFormat& format) {
  Recipe recipe = uniform_recipe("every-result-" + to_string(format), format);
  recipe.scores_product = recipe.values_product = {.sum = float_format(NumberFormat::fp64)};
  recipe.row_sum = SumOrder::pairwise;
  return {"every result", "flash1", recipe, recipe};
}

Comparison as_in_kernels() {
  return {"kernels", "flash2", recipe_named("flash2-bf16"), recipe_named("pytorch-bf16")};
}

std::vector<Comparison> bf16_comparisons() {
  const FloatFormat bf16 = float_format(NumberFormat::bf16);
  return {every_operation(bf16), every_result(bf16), as_in_kernels()};
}

}  // namespace flashbound
