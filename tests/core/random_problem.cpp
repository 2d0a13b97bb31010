#include "tests/core/random_problem.hpp"

#include "experiments/random_inputs.hpp"

#include <random>
#include <sstream>
#include <vector>

namespace flashbound::testing {
namespace {

using Engine = std::mt19937_64;

Index between(Engine& engine, Index low, Index high) {
  const auto span = static_cast<std::uint64_t>(high - low + 1);
  return low + static_cast<Index>(engine() % span);
}

bool one_in(Engine& engine, Index n) { return between(engine, 1, n) == 1; }

// Lengths at a multiple of the block, one off it, or anywhere.
Index length_near(Engine& engine, Index block) {
  const Index blocks = between(engine, 1, 5);
  switch (between(engine, 0, 3)) {
    case 0: return blocks * block;
    case 1: return blocks * block + 1;
    case 2: return blocks * block > 1 ? blocks * block - 1 : 1;
    default: return between(engine, 1, 6 * block);
  }
}

void choose_mask(Engine& engine, Problem& problem) {
  const auto side = [&] { return one_in(engine, 4) ? kUnbounded : between(engine, 0, 20); };
  switch (between(engine, 0, 3)) {
    case 0: break;
    case 1: problem.window_right = 0; break;
    default: problem.window_left = side(); problem.window_right = side();
  }
}

void choose_block_mask(Engine& engine, Problem& problem) {
  BlockMask mask;
  mask.block_q = between(engine, 1, 9);
  mask.block_kv = between(engine, 1, 9);
  mask.rows = Partition{problem.seqlen_q, mask.block_q}.count();
  mask.cols = Partition{problem.seqlen_kv, mask.block_kv}.count();
  const Index density = between(engine, 1, 4);
  for (Index cell = 0; cell < mask.rows * mask.cols; ++cell) {
    mask.cells.push_back(one_in(engine, density) ? 1 : 0);
  }
  problem.block_mask = mask;
}

// Sorted cuts of [0, total]; repeats make empty sequences.
std::vector<Index> cuts(Engine& engine, Index total, Index sequences) {
  std::vector<Index> cu{0};
  for (Index s = 1; s < sequences; ++s) cu.push_back(between(engine, cu.back(), total));
  cu.push_back(total);
  return cu;
}

void choose_modifiers(Engine& engine, Problem& problem) {
  const auto heads = static_cast<std::size_t>(problem.num_heads_q);
  if (one_in(engine, 3)) problem.softmax_scale = 2 * uniform(engine) - 1;
  if (one_in(engine, 3)) problem.softcap = 1 + 30 * uniform(engine);
  if (one_in(engine, 3)) problem.alibi_slopes = alibi_slopes(problem.num_heads_q);
  if (one_in(engine, 3)) {
    for (std::size_t h = 0; h < heads; ++h) problem.sink.push_back(4 * uniform(engine) - 2);
  }
}

}  // namespace

RandomCase random_case(std::uint64_t seed) {
  Engine engine(seed);
  RandomCase result;
  Tile& tile = result.tile;
  tile.block_q = between(engine, 1, 9);
  tile.block_kv = between(engine, 1, 9);
  do {
    tile.panel = between(engine, 1, tile.block_kv);
  } while (tile.block_kv % tile.panel != 0);
  tile.num_splits = between(engine, 1, 6);
  Problem& p = result.problem;
  p.batch = between(engine, 1, 2);
  p.num_heads_kv = between(engine, 1, 2);
  p.num_heads_q = p.num_heads_kv * between(engine, 1, 3);
  p.seqlen_q = length_near(engine, tile.block_q);
  p.seqlen_kv = one_in(engine, 3) ? p.seqlen_q : length_near(engine, tile.block_kv);
  p.head_dim = between(engine, 1, 12);
  p.head_dim_v = one_in(engine, 2) ? p.head_dim : between(engine, 1, 12);
  choose_mask(engine, p);
  if (one_in(engine, 4)) choose_block_mask(engine, p);
  if (!p.block_mask && one_in(engine, 4)) {
    p.batch = 1;
    const Index sequences = between(engine, 1, 4);
    p.cu_seqlens_q = cuts(engine, p.seqlen_q, sequences);
    p.cu_seqlens_kv = cuts(engine, p.seqlen_kv, sequences);
  }
  choose_modifiers(engine, p);
  return result;
}

std::string describe(const RandomCase& random) {
  const Problem& p = random.problem;
  std::ostringstream text;
  text << "batch " << p.batch << " heads " << p.num_heads_q << ":" << p.num_heads_kv << " seqlen "
       << p.seqlen_q << "x" << p.seqlen_kv << " head_dim " << p.head_dim << "/" << p.head_dim_v
       << " window " << p.window_left << "," << p.window_right << " block_mask "
       << p.block_mask.has_value() << " sequences " << sequence_count(p) << " softcap " << p.softcap
       << " alibi " << !p.alibi_slopes.empty() << " sink " << !p.sink.empty() << " tile "
       << random.tile.block_q << "x" << random.tile.block_kv << " panel " << random.tile.panel
       << " splits " << random.tile.num_splits;
  return text.str();
}

}  // namespace flashbound::testing
