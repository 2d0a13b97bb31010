// Closed forms of backward passes against the formulas of the papers, written out as plain
// arithmetic.
#include "core/closed_form.hpp"
#include "core/programs.hpp"
#include "tests/core/one_head.hpp"

#include <doctest/doctest.h>

#include <string_view>

namespace flashbound {
namespace {

IoCount square_count(std::string_view algorithm, Index n, Index d, Index br, Index bc) {
  return closed_form(algorithm, testing::one_head({n, n, d, d}), {.block_q = br, .block_kv = bc},
                     NumberFormat::fp16);
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
    CAPTURE(size.bc);
    const IoCount count = square_count(algorithm, size.n, size.d, size.br, size.bc);
    Elements total;
    for (const TensorTraffic& tensor : count.tensors) total += tensor.read + tensor.written;
    const Index tc = (size.n + size.bc - 1) / size.bc;
    CHECK(to_string(total) == to_decimal(words_in_paper(size.n, size.d, tc)));
  }
}

}  // namespace

TEST_SUITE("core.closed_form") {
  // Dao et al. 2022, Algorithm 3 (backward): P twice, dP and dS written and read, dS once more.
  TEST_CASE("standard-backward moves 7 N^2 + 8 N d words") {
    check_words("standard-backward", [](Index n, Index d, Index) { return 7 * n * n + 8 * n * d; });
  }

  // Algorithm 4: K, V, dK, dV once; Q, O, dO, dQ, dQ again, row_max and row_sum at every visit.
  TEST_CASE("flash1-backward moves 4 N d + 5 N d Tc + 2 N Tc words") {
    check_words("flash1-backward",
                [](Index n, Index d, Index tc) { return 4 * n * d + 5 * n * d * tc + 2 * n * tc; });
  }

  // Dao 2023, Algorithm 2: O and dO once for delta; then Q, dO, dQ twice, lse and delta a visit.
  TEST_CASE("flash2-backward moves 2 N d + N and 4 N d + 4 N d Tc + 2 N Tc words") {
    check_words("flash2-backward", [](Index n, Index d, Index tc) {
      return 2 * n * d + n + 4 * n * d + tc * (4 * n * d + 2 * n);
    });
  }

  TEST_CASE("tiles dividing N make five products when P is computed again and four when not") {
    for (const Algorithm& algorithm : algorithms(Pass::backward)) {
      CAPTURE(algorithm.name);
      const Int128 products = algorithm.name == "standard-backward" ? 4 : 5;
      const IoCount count = square_count(algorithm.name, 512, 64, 64, 128);
      CHECK(count.flops == Flops(2 * products * 512 * 512 * 64));
    }
  }
}

}  // namespace flashbound
