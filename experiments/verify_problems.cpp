#include "experiments/verify_problems.hpp"

#include <utility>

namespace flashbound {
namespace {

struct Heads {
  Index q, kv;
};
struct Lengths {
  Index q, kv;
};
struct HeadDims {
  Index qk, v;
};
enum class Causal { no, yes };

Problem shape(Index batch, Heads heads, Lengths lengths, HeadDims dims, Causal causal) {
  Problem problem;
  problem.batch = batch;
  problem.num_heads_q = heads.q;
  problem.num_heads_kv = heads.kv;
  problem.seqlen_q = lengths.q;
  problem.seqlen_kv = lengths.kv;
  problem.head_dim = dims.qk;
  problem.head_dim_v = dims.v;
  if (causal == Causal::yes) problem.window_right = 0;
  return problem;
}

}  // namespace

std::vector<VerifyProblem> verify_problems() {
  // A tile that kernels use; decoding has one row. `panel` serves small-cache, splits split-kv.
  const Tile prefill{.block_q = 128, .block_kv = 64, .panel = 16, .num_splits = 4};
  const Tile decode{.block_q = 16, .block_kv = 128, .panel = 16, .num_splits = 8};
  return {
      {"gpt2-medium", "Radford et al. 2019; FlashAttention Figure 2 (batch 64, no mask)",
       shape(64, {16, 16}, {1024, 1024}, {64, 64}, Causal::no), prefill},
      {"gpt2-medium-causal", "the same with the mask it is trained with",
       shape(64, {16, 16}, {1024, 1024}, {64, 64}, Causal::yes), prefill},
      {"llama-2-7b", "Touvron et al. 2023, 32 heads of 128, context 4096",
       shape(1, {32, 32}, {4096, 4096}, {128, 128}, Causal::yes), prefill},
      {"gqa-32-8", "grouped heads as in Llama 3 8B (2024): 32 query heads, 8 of keys and values",
       shape(1, {32, 8}, {2048, 2048}, {128, 128}, Causal::yes), prefill},
      {"decode-8192", "one new query against 8192 cached keys, grouped heads",
       shape(16, {32, 8}, {1, 8192}, {128, 128}, Causal::yes), decode},
      {"mla-prefill", "latent attention as in DeepSeek-V2 (2024): head_dim 192, head_dim_v 128",
       shape(1, {128, 128}, {1024, 1024}, {192, 128}, Causal::yes), prefill},
      {"mla-decode", "latent attention while decoding: 128 query heads on one of 576/512",
       shape(16, {128, 1}, {1, 8192}, {576, 512}, Causal::yes), decode},
  };
}

Problem one_group(const Problem& problem) {
  Problem group = problem;
  group.batch = 1;
  group.num_heads_q = q_heads_per_kv_head(problem);
  group.num_heads_kv = 1;
  return group;
}

}  // namespace flashbound
