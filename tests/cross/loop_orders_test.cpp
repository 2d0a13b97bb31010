// What loop orders have in common, in fp64 with sums in sequence: there the theory's identities are
// identities of bits, or bounded by the roundings in which two orders differ.
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 150;

// uniform_recipe(format) with this name adds in sequence; the recipe fp64 does not.
Recipe sequential_fp64() {
  return uniform_recipe("fp64-sequential", float_format(NumberFormat::fp64));
}

struct Part {
  testing::RandomCase random;
  OwnedInputs inputs;
  Sequence at;
  Index head = 0;
};

Part part_of(std::uint64_t seed) {
  Part part{testing::random_case(seed), {}, {}, 0};
  const Problem& p = part.random.problem;
  part.inputs = normal_inputs(p, seed);
  part.at = sequence(p, static_cast<Index>(seed / 7) % sequence_count(p));
  part.head = static_cast<Index>(seed) % p.num_heads_q;
  return part;
}

NumericRun run(const char* algorithm, const Part& part, const Tile& tile) {
  return run_numeric(algorithm_named(algorithm).program(), part.random.problem, tile,
                     part.inputs.view(), part.at, part.head, sequential_fp64());
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same_values(const HeadTensor& a, const HeadTensor& b) {
  return a.values.size() == b.values.size() &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), same);
}

bool same_lse(const NumericRun& a, const NumericRun& b, Index rows) {
  for (Index row = 0; row < rows; ++row) {
    if (!same(*a.lse(row), *b.lse(row))) return false;
  }
  return true;
}

// Each term w v of a row passes at most this many roundings, in every loop order here: a product, a
// sum a key, and a block three rescales and one division; then divisions, merges and the row sum's
// n + T. Two results of m roundings a term differ by at most 2 gamma_m sum w |v| / row_sum, and the
// weights sum to 1. Weights themselves may be taken from another maximum: exp(s - m) has an error
// of (|s| + |m| + 1) u, for up to T maxima, which the size of logits multiplies.
double allowed(const Part& part, const Tile& tile) {
  const Index blocks = Partition{part.at.seqlen_kv, tile.block_kv}.count();
  double v = 0;
  double q = 0;
  double k = 0;
  for (const double x : part.inputs.v.elements) v = std::max(v, std::abs(x));
  for (const double x : part.inputs.q.elements) q = std::max(q, std::abs(x));
  for (const double x : part.inputs.k.elements) k = std::max(k, std::abs(x));
  const Problem& p = part.random.problem;
  const double logit = std::abs(softmax_scale(p)) * q * k * static_cast<double>(p.head_dim) +
                       static_cast<double>(part.at.seqlen_kv + part.at.seqlen_q);  // ALiBi
  const auto terms = static_cast<double>(2 * part.at.seqlen_kv + 8 * blocks + 16);
  return 2 * (terms + static_cast<double>(blocks + 2) * (2 * logit + 1)) * 0x1p-53 * v * 1.01;
}

double difference(const NumericRun& a, const NumericRun& b) {
  double worst = 0;
  const HeadTensor& x = *a.find("o");
  const HeadTensor& y = *b.find("o");
  for (std::size_t at = 0; at < x.values.size(); ++at) {
    worst = std::max(worst, std::abs(x.values[at] - y.values[at]));
  }
  return worst;
}

template <class Check>
void for_each_part(const Check& check) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Part part = part_of(seed);
    CAPTURE(seed);
    CAPTURE(testing::describe(part.random));
    check(part, part.random.tile);
  }
}

}  // namespace

TEST_SUITE("cross.loop_orders") {
  TEST_CASE("flash1 and flash2 have the same row statistics bit for bit") {
    // Both fold the same blocks of a row in the same order; only O is treated otherwise.
    for_each_part([](const Part& part, const Tile& tile) {
      const NumericRun flash1 = run("flash1", part, tile);
      const NumericRun flash2 = run("flash2", part, tile);
      CHECK(same_lse(flash1, flash2, part.at.seqlen_q));
      CHECK(flash1.rescales.done == flash2.rescales.done);
    });
  }

  TEST_CASE("row statistics depend on block_kv and on no block_q") {
    bool block_kv_matters = false;
    for_each_part([&](const Part& part, const Tile& tile) {
      const NumericRun one = run("flash1", part, tile);
      const NumericRun two = run("flash2", part, tile);
      for (const Index block_q : {1, 3, 64}) {
        Tile other = tile;
        other.block_q = block_q;
        const NumericRun flash1 = run("flash1", part, other);
        CHECK(same_values(*flash1.find("row_max"), *one.find("row_max")));
        CHECK(same_values(*flash1.find("row_sum"), *one.find("row_sum")));
        CHECK(same_values(*flash1.find("o"), *one.find("o")));
        const NumericRun flash2 = run("flash2", part, other);
        CHECK(same_values(*flash2.find("lse"), *two.find("lse")));
        CHECK(same_values(*flash2.find("o"), *two.find("o")));
      }
      Tile other = tile;
      other.block_kv = other.panel = 2 * tile.block_kv + 1;
      const NumericRun wider = run("flash1", part, other);
      // The maximum is exact in any order; the sum is not.
      CHECK(same_values(*wider.find("row_max"), *one.find("row_max")));
      block_kv_matters =
          block_kv_matters || !same_values(*wider.find("row_sum"), *one.find("row_sum"));
    });
    CHECK(block_kv_matters);
  }

  TEST_CASE("the three starts of flash1 give the same bits") {
    for_each_part([](const Part& part, const Tile& tile) {
      const NumericRun one = run("flash1", part, tile);
      for (const char* name : {"flash1-charged-start", "flash1-skip-first-read"}) {
        const NumericRun other = run(name, part, tile);
        for (const char* output : {"o", "row_max", "row_sum"}) {
          CHECK(same_values(*other.find(output), *one.find(output)));
        }
      }
    });
  }

  TEST_CASE("one split without a sink is flash2 bit for bit") {
    // The merge of one part: its weight is exp(0) = 1, its sum 1.
    for_each_part([](const Part& whole, const Tile& of) {
      Part part = whole;
      part.random.problem.sink.clear();
      Tile tile = of;
      tile.num_splits = 1;
      const NumericRun split = run("split-kv", part, tile);
      const NumericRun flash2 = run("flash2", part, tile);
      CHECK(same_values(*split.find("o"), *flash2.find("o")));
      CHECK(same_values(*split.find("lse"), *flash2.find("lse")));
    });
  }

  TEST_CASE("one block of keys makes flash1 flash2 bit for bit") {
    // Then flash1 divides once as well. Of a sink's row sum it multiplies only zeros.
    for_each_part([](const Part& part, const Tile& of) {
      Tile tile = of;
      tile.block_kv = std::max<Index>(part.at.seqlen_kv, 1);
      tile.panel = 1;
      CHECK(
          same_values(*run("flash1", part, tile).find("o"), *run("flash2", part, tile).find("o")));
    });
  }

  TEST_CASE("outputs of all orders agree within their roundings") {
    // flash1 multiplies O by the old row sum and divides by the new one at each step, standard
    // divides weights before the product, rabe-staats and splits merge: the same sum of reals.
    bool flash1_differs = false;
    for_each_part([&](const Part& part, const Tile& tile) {
      const NumericRun flash2 = run("flash2", part, tile);
      for (const char* name : {"flash1", "rabe-staats", "standard", "standard-tiled", "split-kv"}) {
        CAPTURE(std::string(name));
        const double found = difference(run(name, part, tile), flash2);
        CHECK(found <= allowed(part, tile));
        flash1_differs = flash1_differs || (name == std::string("flash1") && found > 0);
      }
    });
    CHECK(flash1_differs);
  }
}

}  // namespace flashbound
