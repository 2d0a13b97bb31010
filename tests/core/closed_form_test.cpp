// Closed forms against the formulas and figures that papers print, written out as plain arithmetic.
#include "core/closed_form.hpp"

#include "core/errors.hpp"
#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace flashbound {
namespace {

Problem square(Index seqlen, Index head_dim) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = seqlen;
  problem.head_dim = problem.head_dim_v = head_dim;
  return problem;
}

Tile blocks(Index block_q, Index block_kv) { return {.block_q = block_q, .block_kv = block_kv}; }

IoCount fp16_count(std::string_view algorithm, const Problem& problem, const Tile& tile) {
  return closed_form(algorithm, problem, tile, NumberFormat::fp16);
}

Int128 words(const IoCount& count) {
  Elements total;
  for (const TensorTraffic& tensor : count.tensors) total += tensor.read + tensor.written;
  return total.value();
}

const TensorTraffic& tensor(const IoCount& count, std::string_view name) {
  for (const TensorTraffic& entry : count.tensors) {
    if (entry.tensor == name) return entry;
  }
  throw ConfigError("no tensor " + std::string(name));
}

// Decimal gigabytes of q, k, v and o: what papers count, row statistics left out.
double matrices_gb(const IoCount& count) {
  Bytes total;
  for (const char* name : {"q", "k", "v", "o"}) {
    total += tensor(count, name).read_bytes() + tensor(count, name).write_bytes();
  }
  return static_cast<double>(total.value()) * 1e-9;
}

struct Size {
  Index n, d, br, bc;
};
// Whole blocks, ragged blocks, blocks longer than the sequence, single elements.
constexpr Size kSizes[] = {{1024, 64, 64, 256}, {4096, 128, 128, 64}, {1000, 64, 96, 112},
                           {63, 32, 64, 64},    {1, 1, 1, 1},         {257, 80, 16, 300}};

template <class Words>
void check_words(std::string_view algorithm, const Words& words_in_paper) {
  for (const Size& size : kSizes) {
    CAPTURE(size.n);
    CAPTURE(size.d);
    CAPTURE(size.br);
    CAPTURE(size.bc);
    const Index tr = (size.n + size.br - 1) / size.br;
    const Index tc = (size.n + size.bc - 1) / size.bc;
    const IoCount count = fp16_count(algorithm, square(size.n, size.d), blocks(size.br, size.bc));
    CHECK(to_decimal(words(count)) == to_decimal(words_in_paper(size.n, size.d, tr, tc)));
  }
}

// GPT-2 medium as FlashAttention's Figure 2 has it: batch 64, 16 heads, N = 1024, d = 64.
Problem gpt2_medium() {
  Problem problem = square(1024, 64);
  problem.batch = 64;
  problem.num_heads_q = 16;
  problem.num_heads_kv = 16;
  return problem;
}

}  // namespace

TEST_SUITE("core.closed_form") {
  TEST_CASE("standard attention moves 4 N^2 + 4 N d words") {
    check_words("standard", [](Index n, Index d, Index, Index) { return 4 * n * n + 4 * n * d; });
  }

  TEST_CASE("standard attention in blocks reads scores twice and K and V once a query block") {
    check_words("standard-tiled", [](Index n, Index d, Index tr, Index) {
      return 5 * n * n + 2 * n * d + 2 * n * d * tr;
    });
  }

  // Dao et al. 2022, proof of Theorem 2: every pass over Q and O, of which there are Tc, costs N d
  // read for each and N d written for O; row_max and row_sum travel both ways.
  TEST_CASE("flash1 moves 2 N d + 3 N d Tc + 4 N Tc words") {
    check_words("flash1", [](Index n, Index d, Index, Index tc) {
      return 2 * n * d + 3 * n * d * tc + 4 * n * tc;
    });
  }

  TEST_CASE("the charged start of flash1 writes N d + 2 N words more") {
    check_words("flash1-charged-start", [](Index n, Index d, Index, Index tc) {
      return 2 * n * d + 3 * n * d * tc + 4 * n * tc + n * d + 2 * n;
    });
  }

  TEST_CASE("flash1 without first reads moves N d + 2 N words less") {
    check_words("flash1-skip-first-read", [](Index n, Index d, Index, Index tc) {
      return n * d * (3 * tc + 1) + 4 * n * tc - 2 * n;
    });
  }

  TEST_CASE("flash2 moves 2 N d + 2 N d Tr + N words") {
    check_words("flash2",
                [](Index n, Index d, Index tr, Index) { return 2 * n * d + 2 * n * d * tr + n; });
  }

  TEST_CASE("rabe-staats moves 2 N d + 2 N d Tr words") {
    check_words("rabe-staats",
                [](Index n, Index d, Index tr, Index) { return 2 * n * d + 2 * n * d * tr; });
  }

  TEST_CASE("small-cache moves products of its own blocks and spills each score once") {
    for (const Size& size : kSizes) {
      CAPTURE(size.n);
      CAPTURE(size.bc);
      const auto& [n, d, br, bc] = size;
      const Index tr = (n + br - 1) / br;
      const Index tc = (n + bc - 1) / bc;
      const Index te = (d + bc - 1) / bc;
      const IoCount count = fp16_count("small-cache", square(n, d), blocks(br, bc));
      CHECK(words(count) == n * d * tc + 2 * n * d * tr + n * n + n * n * te + n * d + n);
    }
  }

  // Flash-Decoding: a partial o and lse for each split, written once and read once.
  TEST_CASE("split-kv moves 2 S (d + 1) words a query more than flash2 and reads Q in each split") {
    for (const Index splits : {1, 3, 16, 1000}) {
      CAPTURE(splits);
      const Int128 parts = splits;
      Problem decode = square(8192, 128);
      decode.seqlen_q = 1;
      Tile tile = blocks(16, 64);
      tile.num_splits = splits;
      CHECK(words(fp16_count("split-kv", decode, tile)) ==
            words(fp16_count("flash2", decode, tile)) + 2 * parts * (128 + 1) + (parts - 1) * 128);
    }
  }

  TEST_CASE("tiles dividing N make 4 N^2 d FLOPs whatever the forward algorithm") {
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      CAPTURE(algorithm.name);
      const IoCount count = fp16_count(algorithm.name, square(512, 64), blocks(64, 128));
      CHECK(count.flops == Flops(Int128{4} * 512 * 512 * 64));
    }
  }

  // Dao et al. 2022, Figure 2, middle: HBM bytes of the forward pass against the key block size,
  // digitised as 6.56, 3.36, 1.74 and 0.94 GB.
  TEST_CASE("flash1 without first reads gives the bytes of FlashAttention's Figure 2") {
    const Index block_kv[] = {64, 128, 256, 512};
    const double published_gb[] = {6.56, 3.36, 1.74, 0.94};
    const double passes_gb[] = {6.577, 3.355, 1.745, 0.940};
    for (int at = 0; at < 4; ++at) {
      CAPTURE(block_kv[at]);
      const double gb = matrices_gb(
          fp16_count("flash1-skip-first-read", gpt2_medium(), blocks(64, block_kv[at])));
      CHECK(gb == doctest::Approx(published_gb[at]).epsilon(0.005));
      CHECK(gb == doctest::Approx(passes_gb[at]).epsilon(0.0005));
    }
  }

  TEST_CASE("flash2 moves 1.342 GB where flash1 moves 1.745 or 1.879") {
    const Tile tile = blocks(256, 256);
    const auto gb = [&](const char* name) {
      return matrices_gb(fp16_count(name, gpt2_medium(), tile));
    };
    CHECK(gb("flash2") == doctest::Approx(1.342).epsilon(0.0005));
    CHECK(gb("flash1-skip-first-read") == doctest::Approx(1.745).epsilon(0.0005));
    CHECK(gb("flash1") == doctest::Approx(1.879).epsilon(0.0005));
    const double long_ratio = matrices_gb(fp16_count("flash2", square(1 << 20, 64), tile)) /
                              matrices_gb(fp16_count("flash1", square(1 << 20, 64), tile));
    CHECK(long_ratio == doctest::Approx(2.0 / 3.0).epsilon(0.001));
  }

  // Constants that the notation of Theorem 2 hides, with the block sizes of Algorithm 1.
  TEST_CASE("flash1 costs 12 + 16/d times N^2 d^2 / M and flash2 8 times") {
    for (const Index d : {32, 64, 128}) {
      CAPTURE(d);
      const Index m = 16 * d * d;
      const Index n = Index{1} << 22;
      const double unit = static_cast<double>(n) * static_cast<double>(n) *
                          static_cast<double>(d * d) / static_cast<double>(m);
      const auto ratio = [&](const char* name, const Tile& tile) {
        return static_cast<double>(words(fp16_count(name, square(n, d), tile))) / unit;
      };
      const Tile printed = blocks(d, m / (4 * d));
      CHECK(ratio("flash1", printed) ==
            doctest::Approx(12 + 16.0 / static_cast<double>(d)).epsilon(0.002));
      CHECK(ratio("flash2", blocks(m / (4 * d), d)) == doctest::Approx(8).epsilon(0.002));
    }
  }

  // Square blocks of sqrt(M) turn both products into 2 N^2 d / sqrt(M) reads each.
  TEST_CASE("small-cache costs 4 N^2 d / sqrt(M) and one spilled matrix in leading order") {
    const Index n = Index{1} << 20;
    const IoCount count = fp16_count("small-cache", square(n, 128), blocks(32, 32));
    const double nd = static_cast<double>(n) * static_cast<double>(n);
    const double leading = 4 * nd * 128 / 32 + nd;
    CHECK(static_cast<double>(words(count)) == doctest::Approx(leading).epsilon(0.001));
    CHECK(count.sram_peak.value() < 32 * 32 * 5 / 4);
  }

  TEST_CASE(
      "the block sizes printed with flash1 do not fit for M = 4 d^2 and do from 8 d^2 + 24 d") {
    for (const Index d : {16, 64, 128}) {
      CAPTURE(d);
      const auto peak = [&](Index m) {
        const Index bc = (m + 4 * d - 1) / (4 * d);
        return fp16_count("flash1", square(1 << 16, d), blocks(std::min(bc, d), bc)).sram_peak;
      };
      CHECK(peak(4 * d * d) > 5 * (d * Elements(d)));
      for (const Index m : {8 * d * d + 24 * d, 16 * d * d, 20 * d * d}) {
        CAPTURE(m);
        CHECK(peak(m) <= Elements(m));
      }
    }
  }

  TEST_CASE("counts stay exact beyond 64 bits") {
    Problem problem = square(Index{1} << 24, 64);
    problem.batch = 64;
    problem.num_heads_q = 16;
    problem.num_heads_kv = 16;
    const IoCount flash2 = fp16_count("flash2", problem, blocks(64, 64));
    CHECK(to_string(flash2.flops) == "73786976294838206464");                    // 2^66
    CHECK(to_string(tensor(flash2, "k").read_bytes()) == "576460752303423488");  // 2^59
    CHECK(to_string(flash2.exponentials) == to_decimal((Int128{1} << 58) + (Int128{1} << 52)));
    const IoCount standard = fp16_count("standard", problem, blocks(64, 64));
    CHECK(to_string(hbm_bytes(standard)) ==
          to_decimal((Int128{1} << 61) + (Int128{1} << 43)));  // (4 N^2 + 4 N d) H, 2 bytes each
  }

  TEST_CASE("no legal problem overflows 128 bits") {
    Problem problem = square(Index{1} << 32, 576);
    problem.batch = Index{1} << 24;
    problem.num_heads_q = problem.num_heads_kv = Index{1} << 16;
    Tile tile = blocks(1, 1);
    tile.num_splits = Index{1} << 32;
    const Int128 triangle = (Int128{1} << 63) + (Int128{1} << 31);  // n (n + 1) / 2
    for (const Index window : {kUnbounded, Index{0}, Index{1000}, Index{1} << 32}) {
      problem.window_right = window;
      validate(problem);
      validate(tile);
      for (const Algorithm& algorithm : algorithms()) {
        CAPTURE(algorithm.name);
        CAPTURE(window);
        const IoCount count = closed_form(algorithm.name, problem, tile, NumberFormat::fp64);
        CHECK(hbm_bytes(count) > Bytes());
        if (window == 0 && !algorithm.name.starts_with("standard")) {
          const Int128 products = algorithm.pass == Pass::forward ? 2 : 5;
          CHECK(count.flops == Flops((Int128{1} << 40) * 2 * products * 576 * triangle));
        }
      }
    }
  }

  TEST_CASE("an algorithm that does not exist is rejected by name") {
    CHECK_THROWS_WITH_AS(
        fp16_count("flash9", square(8, 8), blocks(4, 4)),
        "algorithm = flash9: must be one of standard, standard-tiled, "
        "rabe-staats, flash1, flash1-charged-start, flash1-skip-first-read, "
        "flash2, split-kv, small-cache, small-cache-spill-both, standard-backward, "
        "flash1-backward, flash2-backward",
        ConfigError);
  }
}

}  // namespace flashbound
