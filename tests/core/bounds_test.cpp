#include "core/bounds.hpp"

#include "core/closed_form.hpp"
#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace flashbound {
namespace {

Index between(std::mt19937_64& engine, Index low, Index high) {
  return low + static_cast<Index>(engine() % static_cast<std::uint64_t>(high - low + 1));
}

Problem head(Index seqlen_q, Index seqlen_kv) {
  Problem problem;
  problem.seqlen_q = seqlen_q;
  problem.seqlen_kv = seqlen_kv;
  problem.head_dim = 64;
  problem.head_dim_v = 32;
  return problem;
}

BlockMask random_block_mask(std::mt19937_64& engine, const Problem& problem) {
  BlockMask mask;
  mask.block_q = between(engine, 1, 6);
  mask.block_kv = between(engine, 1, 6);
  mask.rows = Partition{problem.seqlen_q, mask.block_q}.count();
  mask.cols = Partition{problem.seqlen_kv, mask.block_kv}.count();
  for (Index cell = 0; cell < mask.rows * mask.cols; ++cell) {
    mask.cells.push_back(between(engine, 0, 2) == 0 ? 1 : 0);
  }
  return mask;
}

Problem random_problem(std::mt19937_64& engine) {
  Problem problem = head(between(engine, 1, 20), between(engine, 1, 20));
  problem.batch = between(engine, 1, 3);
  problem.num_heads_q = 6;
  problem.num_heads_kv = between(engine, 1, 3);
  problem.head_dim = between(engine, 1, 9);
  problem.head_dim_v = between(engine, 1, 9);
  problem.window_left = between(engine, -1, 12);
  problem.window_right = between(engine, -1, 8);
  const Index kind = between(engine, 0, 3);
  if (kind == 0) problem.block_mask = random_block_mask(engine, problem);
  if (kind == 1) {
    problem.batch = 1;
    problem.cu_seqlens_q = {0, between(engine, 0, problem.seqlen_q), problem.seqlen_q};
    problem.cu_seqlens_kv = {0, between(engine, 0, problem.seqlen_kv), problem.seqlen_kv};
  }
  return problem;
}

// Looks at every pair of every sequence.
struct Enumerated {
  Int128 rows = 0;
  Int128 keys = 0;
  Int128 pairs = 0;
};

Enumerated enumerate(const Problem& problem) {
  Enumerated total;
  for (Index s = 0; s < sequence_count(problem); ++s) {
    const Schedule schedule = schedule_for(problem, {}, sequence(problem, s));
    const auto& shape = schedule.shape;
    std::vector<bool> key_seen(static_cast<std::size_t>(shape.seqlen_kv));
    for (Index q = 0; q < shape.seqlen_q; ++q) {
      bool sees = false;
      for (Index k = 0; k < shape.seqlen_kv; ++k) {
        if (!schedule.visible(q, k)) continue;
        sees = true;
        key_seen[static_cast<std::size_t>(k)] = true;
        ++total.pairs;
      }
      total.rows += sees ? 1 : 0;
    }
    for (const bool seen : key_seen) total.keys += seen ? 1 : 0;
  }
  return total;
}

}  // namespace

TEST_SUITE("core.bounds") {
  TEST_CASE("the compulsory bound and visible pairs equal an enumeration of pairs") {
    std::mt19937_64 engine(21);
    for (int repeat = 0; repeat < 4000; ++repeat) {
      const Problem problem = random_problem(engine);
      CAPTURE(repeat);
      const Enumerated all = enumerate(problem);
      const CompulsoryBound bound = compulsory_bound(problem, NumberFormat::bf16);
      const Int128 heads_q = problem.num_heads_q;
      const Int128 heads_kv = problem.num_heads_kv;
      CHECK(bound.q_read == Elements(heads_q * all.rows * problem.head_dim));
      CHECK(bound.k_read == Elements(heads_kv * all.keys * problem.head_dim));
      CHECK(bound.v_read == Elements(heads_kv * all.keys * problem.head_dim_v));
      CHECK(bound.o_written == Elements(heads_q * all.rows * problem.head_dim_v));
      CHECK(bound.read_bytes() == 2 * Bytes(bound.read().value()));
      const CompulsoryBound back = compulsory_bound(problem, NumberFormat::fp16, Pass::backward);
      CHECK(back.read() == bound.read() + bound.o_written);  // dO has the shape of O
      CHECK(back.written() == bound.read());                 // dQ, dK and dV those of Q, K and V
      CHECK((bound.grad_o_read == Elements() && back.o_written == Elements()));
      CHECK(visible_pairs(problem) == Elements(heads_q * all.pairs));
      CHECK(flops_useful(problem) ==
            Flops(heads_q * all.pairs * 2 * (problem.head_dim + problem.head_dim_v)));
    }
  }

  TEST_CASE("no algorithm reads or writes less than the compulsory bound or computes less") {
    std::mt19937_64 engine(22);
    for (int repeat = 0; repeat < 1000; ++repeat) {
      const Problem problem = random_problem(engine);
      CAPTURE(repeat);
      const Tile tile{.block_q = between(engine, 1, 24), .block_kv = between(engine, 1, 24)};
      for (const Algorithm& algorithm : algorithms()) {
        CAPTURE(algorithm.name);
        const CompulsoryBound bound = compulsory_bound(problem, NumberFormat::fp16, algorithm.pass);
        const IoCount count = closed_form(algorithm.name, problem, tile, NumberFormat::fp16);
        CHECK(hbm_read_bytes(count) >= bound.read_bytes());
        CHECK(hbm_write_bytes(count) >= bound.write_bytes());
        CHECK(count.flops >= flops_useful(problem, algorithm.pass));
      }
    }
  }

  TEST_CASE("one tile over a whole unmasked head meets the compulsory bound") {
    const Problem problem = head(96, 160);
    const Tile whole{.block_q = 96, .block_kv = 160};
    const IoCount count = closed_form("rabe-staats", problem, whole, NumberFormat::fp16);
    const CompulsoryBound bound = compulsory_bound(problem, NumberFormat::fp16);
    CHECK(hbm_read_bytes(count) == bound.read_bytes());
    CHECK(hbm_write_bytes(count) == bound.write_bytes());
    CHECK(bound.bytes() == 2 * Bytes(96 * 64 + 160 * 64 + 160 * 32 + 96 * 32));
  }

  TEST_CASE("query heads of a group need their keys once") {
    Problem problem = head(100, 100);
    problem.num_heads_q = 32;
    problem.num_heads_kv = 8;
    const CompulsoryBound bound = compulsory_bound(problem, NumberFormat::fp32);
    CHECK(bound.q_read == 4 * bound.k_read);
    CHECK(bound.k_read == 2 * bound.v_read);
    CHECK(bound.element_bytes == 4);
  }

  TEST_CASE("visible pairs of a causal square of 2^24 queries on 1024 heads are exact") {
    constexpr Index kSeqlen = Index{1} << 24;
    Problem problem = head(kSeqlen, kSeqlen);
    problem.batch = 64;
    problem.num_heads_q = problem.num_heads_kv = 16;
    problem.window_right = 0;
    const Int128 triangle = Int128{kSeqlen} * (kSeqlen + 1) / 2;
    CHECK(visible_pairs(problem) == Elements(1024 * triangle));
    CHECK(to_string(flops_useful(problem)) == to_decimal(1024 * triangle * 2 * (64 + 32)));
  }

  TEST_CASE("published expressions have their values and know their domains") {
    // N = 4096, d = 64, M = 2^14 words = 4 d^2.
    const auto large = published_bounds(4096, 64, Elements(1 << 14));
    CHECK(large[0].value == 4096.0 * 64 + 4096.0 * 4096);
    CHECK(large[1].value == 4096.0 * 4096 * 64 * 64 / 16384);
    CHECK((large[1].in_domain && large[2].in_domain && large[3].in_domain));
    CHECK(!large[4].in_domain);

    // M = 256 words, below d^2: the small-cache expression is the smaller of the two.
    const auto small = published_bounds(4096, 64, Elements(256));
    CHECK((!small[3].in_domain && small[4].in_domain));
    CHECK(small[4].value == 4096.0 * 4096 * 64 / 16);
    CHECK(small[4].value < small[3].value);

    // At M = d^2 both cases of Saha and Ye say N^2.
    const auto turn = published_bounds(4096, 64, Elements(4096));
    CHECK(turn[3].value == turn[4].value);
    CHECK((turn[3].in_domain && !turn[4].in_domain));
    CHECK(turn[3].value == 4096.0 * 4096);

    // Theorem 2 ends at M = N d.
    CHECK(!published_bounds(4096, 64, Elements(4096 * 64 + 1))[1].in_domain);
    for (const PublishedBound& bound : large) {
      CAPTURE(bound.name);
      CHECK(!bound.expression.empty());
      CHECK(!bound.source.empty());
    }
  }
}

}  // namespace flashbound
