#include "core/closed_form.hpp"
#include "core/lower_bound.hpp"
#include "core/programs.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace flashbound {
namespace {

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

// Words of a tiny head, as bits: Q, then K, then V, each row by row.
struct TinyHead {
  int rows = 0;
  int keys = 0;
  int d = 0;
  int dv = 0;
  int q(int i, int k) const { return i * d + k; }
  int k(int j, int c) const { return (rows + j) * d + c; }
  int v(int j, int c) const { return (rows + keys) * d + j * dv + c; }
  int words() const { return (rows + keys) * d + keys * dv; }
};

bool has_all(std::uint32_t set, int first, int count) {
  for (int w = first; w < first + count; ++w) {
    if ((set >> w & 1U) == 0) return false;
  }
  return true;
}

// What can be formed from a set of words and `carried` pair words, which go where they help most.
int advance_of(const TinyHead& head, std::uint32_t set, int carried, ComputationClass computation) {
  const bool values = computation == ComputationClass::values;
  std::vector<int> gain_by_carrying;
  int formed = 0;
  for (int i = 0; i < head.rows; ++i) {
    for (int j = 0; j < head.keys; ++j) {
      int in_v = 0;
      for (int c = 0; c < head.dv; ++c) in_v += static_cast<int>(set >> head.v(j, c) & 1U);
      const int worth = values ? in_v : 1;
      const bool whole = has_all(set, head.q(i, 0), head.d) && has_all(set, head.k(j, 0), head.d);
      formed += whole ? worth : 0;
      gain_by_carrying.push_back(whole ? 0 : worth);
    }
  }
  std::sort(gain_by_carrying.rbegin(), gain_by_carrying.rend());
  for (int c = 0; c < std::min<int>(carried, static_cast<int>(gain_by_carrying.size())); ++c) {
    formed += gain_by_carrying[static_cast<std::size_t>(c)];
  }
  return formed;
}

}  // namespace

TEST_SUITE("core.segment_bound") {
  TEST_CASE("no set of words advances more than the lemma says") {
    for (const TinyHead head :
         {TinyHead{2, 2, 1, 1}, TinyHead{3, 3, 1, 1}, TinyHead{4, 3, 1, 1}, TinyHead{2, 2, 2, 1},
          TinyHead{2, 2, 1, 2}, TinyHead{3, 2, 2, 2}, TinyHead{2, 3, 2, 2}, TinyHead{3, 3, 2, 1}}) {
      for (const ComputationClass computation :
           {ComputationClass::scores, ComputationClass::values}) {
        for (std::uint32_t set = 0; set < 1U << head.words(); ++set) {
          for (int carried = 0; carried <= head.rows * head.keys; ++carried) {
            const int words = std::popcount(set) + carried;
            const Int128 most = segment_advance(head.d, head.dv, computation, words);
            if (advance_of(head, set, carried, computation) > most) {
              FAIL("a set of " << words << " words advances more");
            }
          }
        }
      }
    }
  }

  TEST_CASE("the lemma is met by square sets of rows") {
    // y rows of Q, y of K and, for products with V, y of V.
    for (const Index d : {1, 3, 64}) {
      for (const Index y : {4 * d, 10 * d}) {
        CHECK(segment_advance(d, d, ComputationClass::scores, 2 * y * d) == Int128{y} * y);
        // 2 z d + z dv words of K, V against y = 2 z rows of Q.
        CHECK(segment_advance(d, d, ComputationClass::values, 4 * y * d) == Int128{2} * y * y * d);
      }
    }
  }

  TEST_CASE("no algorithm reads less than the bound at the fast memory it runs in") {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(what);
        const NumberFormat dtype = seed % 2 == 0 ? NumberFormat::fp16 : NumberFormat::fp64;
        const IoCount count = closed_form(algorithm.name, random.problem, random.tile, dtype);
        const Bytes memory = bytes_of(count.sram_peak, byte_size(dtype));
        const LowerBound bound = lower_bound(random.problem, dtype, algorithm.pass, memory);
        CHECK(hbm_read_bytes(count) >= bound.read_bytes());
        CHECK(hbm_write_bytes(count) >= bound.write_bytes());
        const SegmentBound scores =
            segment_bound(random.problem, dtype, memory, ComputationClass::scores, algorithm.pass);
        CHECK(hbm_read_bytes(count) >= scores.read);
        CHECK(hbm_bytes(count) >= bound.bytes());
      }
    }
  }

  TEST_CASE("no algorithm reads less at sizes where the bound exceeds the compulsory bytes") {
    int telling = 0;
    for (const Index seqlen : {2048, 5000}) {
      for (const Index d : {8, 24}) {
        for (const Index block : {8, 30, 100, 333}) {
          const Problem problem = square(seqlen, d);
          const Tile tile{.block_q = block, .block_kv = block, .panel = 1, .num_splits = 2};
          for (const Algorithm& algorithm : algorithms()) {
            CAPTURE(algorithm.name);
            const IoCount count = closed_form(algorithm.name, problem, tile, NumberFormat::fp16);
            const Bytes memory = bytes_of(count.sram_peak, 2);
            const LowerBound bound =
                lower_bound(problem, NumberFormat::fp16, algorithm.pass, memory);
            telling += bound.segment.read > bound.compulsory.read_bytes() ? 1 : 0;
            CHECK(hbm_read_bytes(count) >= bound.read_bytes());
            CHECK(hbm_bytes(count) >= bound.bytes());
          }
        }
      }
    }
    CHECK(telling > 50);
  }

  TEST_CASE("a square head has the bound of the formula") {
    const Problem problem = square(1 << 14, 64);
    const Int128 memory = 1 << 17;  // words; 32 d^2
    const Int128 quadratic = (Int128{1} << 28) * 64 * 64 / memory;
    const auto words = [&](ComputationClass computation) {
      return segment_bound(problem, NumberFormat::fp16, Bytes(2 * memory), computation)
                 .read.value() /
             2;
    };
    // The best X may be a little better than X = M, for which the formula stands.
    CHECK(words(ComputationClass::scores) >= quadratic - memory);
    CHECK(words(ComputationClass::scores) <= quadratic);
    CHECK(words(ComputationClass::values) >= 2 * quadratic - memory);
    CHECK(words(ComputationClass::values) <= 2 * quadratic);
  }

  TEST_CASE("the best flash2 tile is within twice the bound and a little") {
    const Problem problem = square(1 << 17, 64);
    for (const Index block_q : {1024, 2048, 4096}) {
      const IoCount count =
          closed_form("flash2", problem, {.block_q = block_q, .block_kv = 1}, NumberFormat::fp16);
      const Bytes memory = bytes_of(count.sram_peak, 2);
      const LowerBound bound = lower_bound(problem, NumberFormat::fp16, Pass::forward, memory);
      CHECK(ratio(hbm_read_bytes(count), bound.segment.read) > 1.9);
      CHECK(ratio(hbm_read_bytes(count), bound.segment.read) < 2.2);
    }
  }

  TEST_CASE("in a memory much smaller than d squared products bound more than pairs") {
    const Problem problem = square(1 << 12, 512);
    const Int128 memory = 256;  // words; 16 rows and columns of 512
    const double formula = std::sqrt(2.0) * 0x1p24 * 512 / 16;
    const LowerBound bound =
        lower_bound(problem, NumberFormat::fp16, Pass::forward, Bytes(2 * memory));
    CHECK(bound.product.moved > bound.segment.read);
    const double words = static_cast<double>(bound.product.moved.value()) / 2;
    CHECK(words <= formula);
    // Pairs begun and finished in a segment of 4 M moves: (5 M)^2 / (4 d) against (2 M)^1.5.
    const double begun = 25.0 * 256 * 256 / (4 * 512) / std::pow(512.0, 1.5);
    CHECK(words >= (formula / (1 + begun) - 4 * 256) * 0.999);
    // The best tile of small-cache moves about 4 N^2 d / sqrt(M) + N^2.
    const IoCount count =
        closed_form("small-cache", problem, {.block_q = 13, .block_kv = 13}, NumberFormat::fp16);
    REQUIRE(count.sram_peak <= Elements(memory));
    CHECK(hbm_bytes(count) >= bound.bytes());
    CHECK(ratio(hbm_bytes(count), bound.bytes()) < 4);
  }

  TEST_CASE("a segment forms at least what a matrix product by blocks forms in it") {
    // t rows of Q and K against t^2 carried sums, a column at a time: t^2 + 2 t words hold them,
    // and m columns take 2 t m reads and form t^2 m products.
    for (const Int128 t : {1, 2, 5, 20, 100}) {
      for (const Int128 columns : {1, 3, 50, 500}) {
        CHECK(segment_products(1000000, t * t + 2 * t, 2 * t * columns) >= t * t * columns);
      }
    }
    // Whole rows: y of Q and y of K in d columns.
    for (const Int128 y : {1, 4, 32}) {
      CHECK(segment_products(16, y * 16, y * 16) >= y * y * 16);
    }
  }

  TEST_CASE("more fast memories share the work and lose at most their own fill") {
    const Problem problem = square(1 << 14, 64);
    const Bytes memory(1 << 17);
    const SegmentBound one =
        segment_bound(problem, NumberFormat::fp16, memory, ComputationClass::values);
    const SegmentBound many = segment_bound(problem, NumberFormat::fp16, memory,
                                            ComputationClass::values, Pass::forward, 132);
    CHECK(many.read < one.read);
    CHECK(many.read + 131 * one.segment >= one.read);
    CHECK(segment_bound(problem, NumberFormat::fp16, memory, ComputationClass::values,
                        Pass::forward, Index{1} << 40)
              .read == Bytes{});
  }

  TEST_CASE("query heads of a group and masks count by their visible pairs") {
    Problem grouped = square(4096, 64);
    grouped.num_heads_q = 8;
    Problem apart = grouped;
    apart.num_heads_kv = 8;
    const Bytes memory(1 << 16);
    const auto read = [&](const Problem& problem) {
      return segment_bound(problem, NumberFormat::fp16, memory, ComputationClass::values).read;
    };
    CHECK(read(grouped) == read(apart));
    Problem causal = square(4096, 64);
    causal.window_right = 0;
    CHECK(2 * read(causal) < read(square(4096, 64)) + 2 * memory);
    CHECK(2 * read(causal) + 2 * memory > read(square(4096, 64)));
  }

  TEST_CASE("the largest problems do not overflow") {
    Problem problem = square(Index{1} << 24, 576);
    problem.batch = 1 << 10;
    problem.num_heads_q = problem.num_heads_kv = 65536;
    for (const Index shift : {1, 10, 20, 40, 59, 62}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        CHECK(lower_bound(problem, NumberFormat::fp16, pass, Bytes(Int128{1} << shift)).bytes() >=
              compulsory_bound(problem, NumberFormat::fp16, pass).bytes());
      }
    }
  }
}

}  // namespace flashbound
