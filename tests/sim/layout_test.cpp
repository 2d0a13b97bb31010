#include "sim/layout.hpp"

#include "core/errors.hpp"
#include "core/io_count.hpp"
#include "core/programs.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <functional>

namespace flashbound {
namespace {

constexpr LayoutKind kKinds[] = {LayoutKind::contiguous, LayoutKind::strided, LayoutKind::padded};

Index length(Axis axis, const Problem& problem, const Sequence& sequence) {
  switch (axis) {
    case Axis::query: return sequence.seqlen_q;
    case Axis::key: return sequence.seqlen_kv;
    case Axis::head_dim: return problem.head_dim;
    case Axis::head_dim_v: return problem.head_dim_v;
    default: return 1;
  }
}

// Gives a tensor's elements their addresses by going through them in the order that the layout
// declares, each where the one before it ends: no stride is ever computed.
struct Enumeration {
  const TensorDecl& tensor;
  const Problem& problem;
  Index splits, heads, element_bytes, line;
  std::function<void(const Place&, Index row, Index col, Index address)> visit;
  Index next;

  void element(Index split, Index sequence, Index head, Index row, Index col) {
    visit({sequence, head, split}, row, col, next);
    next += element_bytes;
  }
  void pad() {
    while (next % line != 0) ++next;
  }
  void run(LayoutKind kind) {
    const bool vector = tensor.axes.back() == Axis::one;
    for (Index split = 0; split < splits; ++split) {
      if (!problem.cu_seqlens_q.empty() && (kind != LayoutKind::strided || vector)) {
        for (Index h = 0; h < heads; ++h) {
          for (Index s = 0; s < sequence_count(problem); ++s) matrix(kind, split, s, {h, h + 1});
        }
        continue;
      }
      for (Index s = 0; s < sequence_count(problem); ++s) {
        if (kind == LayoutKind::strided && !vector) {
          matrix(kind, split, s, {0, heads});
        } else {
          for (Index h = 0; h < heads; ++h) matrix(kind, split, s, {h, h + 1});
        }
      }
    }
  }
  // Row by row; within a row, head by head.
  void matrix(LayoutKind kind, Index split, Index s, Interval its_heads) {
    const std::size_t n = tensor.axes.size();
    const bool vector = tensor.axes.back() == Axis::one;
    const Index rows = length(tensor.axes[n - 2], problem, sequence(problem, s));
    const Index cols = length(tensor.axes[n - 1], problem, sequence(problem, s));
    for (Index row = 0; row < rows; ++row) {
      for (Index h = its_heads.begin; h < its_heads.end; ++h) {
        for (Index col = 0; col < cols; ++col) element(split, s, h, row, col);
        if (kind == LayoutKind::padded && !vector) pad();
      }
    }
    if (kind == LayoutKind::padded) pad();
  }
};

std::string rejection(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing rejected";
}

Problem small() {
  return {.batch = 1,
          .num_heads_q = 2,
          .num_heads_kv = 1,
          .seqlen_q = 2,
          .seqlen_kv = 3,
          .head_dim = 4,
          .head_dim_v = 4};
}

}  // namespace

TEST_SUITE_BEGIN("layout");

TEST_CASE("every element lies where going through memory in the declared order puts it") {
  for (std::uint64_t seed = 0; seed < 1200; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const Problem& problem = random.problem;
    const Algorithm& algorithm = algorithms()[seed % algorithms().size()];
    const NumberFormat dtype = seed % 2 == 0 ? NumberFormat::fp16 : NumberFormat::fp64;
    const Index line = Index{1} << (seed % 8);
    const Program program = algorithm.program();
    for (const LayoutKind kind : kKinds) {
      const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
      CAPTURE(what);
      CAPTURE(static_cast<int>(kind));
      const Layout where = layout(program, problem, random.tile, dtype, kind, line);
      Index end = 0;
      bool equal = true;
      for (std::size_t t = 0; t < program.tensors.size(); ++t) {
        const TensorDecl& tensor = program.tensors[t];
        const bool of_kv_heads = tensor.name == "k" || tensor.name == "v";
        const Index ratio = of_kv_heads ? q_heads_per_kv_head(problem) : 1;
        while (end % line != 0) ++end;
        Enumeration all{tensor,
                        problem,
                        tensor.axes.size() == 3 ? random.tile.num_splits : 1,
                        problem.num_heads_q / ratio,
                        element_bytes(tensor.width, dtype),
                        line,
                        {},
                        end};
        all.visit = [&](const Place& place, Index row, Index col, Index expected) {
          for (Index h = place.head * ratio; h < (place.head + 1) * ratio; ++h) {
            const Place its{place.sequence, h, place.split};
            equal = equal && address(where.tensors[t], its, row, col) == expected;
          }
        };
        all.run(kind);
        CHECK(equal);
        CHECK(where.tensors[t].begin == end);
        CHECK(where.tensors[t].end == all.next);
        end = all.next;
      }
      while (end % line != 0) ++end;
      CHECK(where.bytes == end);
    }
  }
}

TEST_CASE("segments hold the bytes of a region and nothing else") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const Program program = algorithms()[seed % algorithms().size()].program();
    const Layout where = layout(program, random.problem, random.tile, NumberFormat::fp16,
                                kKinds[seed % 3], Index{1} << (seed % 8));
    for (const TensorLayout& tensor : where.tensors) {
      const MatrixLayout& m = tensor.matrix(0);
      const Place place{0, random.problem.num_heads_q - 1, tensor.splits - 1};
      const Interval rows{m.rows / 3, m.rows - m.rows / 4};
      const Interval cols{seed % 2 == 0 ? 0 : m.cols / 2, m.cols};
      std::vector<Index> expected;
      for (Index row = rows.begin; row < rows.end; ++row) {
        for (Index col = cols.begin; col < cols.end; ++col) {
          for (Index byte = 0; byte < tensor.element_bytes; ++byte) {
            expected.push_back(address(tensor, place, row, col) + byte);
          }
        }
      }
      const Segments s = segments(tensor, place, rows, cols);
      std::vector<Index> bytes;
      bool joined = true;  // no segment begins where the one before it ends
      for (Index i = 0; i < s.count; ++i) {
        const Index begin = s.first + i * s.stride;
        joined = joined && (bytes.empty() || bytes.back() + 1 != begin);
        for (Index byte = 0; byte < s.bytes; ++byte) bytes.push_back(begin + byte);
      }
      CHECK(bytes == expected);
      CHECK(joined);
    }
  }
}

TEST_CASE("three layouts of K and lse worked out on paper") {
  const Program program = flash2_program();
  const Tile tile{.block_q = 2, .block_kv = 2};
  Problem problem = small();
  problem.num_heads_kv = 2;
  const auto k = [&](LayoutKind kind) {
    return layout(program, problem, tile, NumberFormat::fp16, kind, 64).tensors[1];
  };
  // q holds 2 x 2 x 4 halves, 32 bytes; in `padded` 4 rows of 64.
  CHECK(address(k(LayoutKind::contiguous), {0, 1, 0}, 2, 3) == 64 + 1 * 24 + 2 * 8 + 6);
  CHECK(address(k(LayoutKind::strided), {0, 1, 0}, 2, 3) == 64 + 2 * 16 + 1 * 8 + 6);
  CHECK(address(k(LayoutKind::padded), {0, 1, 0}, 2, 3) == 256 + 1 * 192 + 2 * 64 + 6);
  // lse is (batch, heads, seqlen) even where rows of heads interleave.
  const Layout strided = layout(program, problem, tile, NumberFormat::fp16, LayoutKind::strided, 4);
  const TensorLayout& lse = strided.tensors[4];
  CHECK(address(lse, {0, 1, 0}, 1, 0) - lse.begin == 12);
}

TEST_CASE("a line that is no power of two and tensors beyond the address space are rejected") {
  const auto attempt = [](const Program& program, const Problem& problem, Index line) {
    return rejection(
        [&] { layout(program, problem, {}, NumberFormat::fp16, LayoutKind::contiguous, line); });
  };
  CHECK(attempt(flash2_program(), small(), 48) ==
        "line_bytes = 48: must be a power of two in [1, 1073741824]");
  CHECK(attempt(flash2_program(), small(), 0) ==
        "line_bytes = 0: must be a power of two in [1, 1073741824]");
  Problem huge = small();
  huge.seqlen_q = huge.seqlen_kv = Index{1} << 32;
  CHECK(attempt(flash2_program(), huge, 64) == "nothing rejected");
  // s, 2 x 2^64 halves, begins behind q (2^36 bytes), k and v (2^35 each).
  CHECK(attempt(standard_tiled_program(), huge, 64) ==
        "layout_bytes = " + to_decimal((Int128{1} << 66) + (Int128{1} << 37)) +
            ": must be at most 4611686018427387904");
}

TEST_SUITE_END();

}  // namespace flashbound
