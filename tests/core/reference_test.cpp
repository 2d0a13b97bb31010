// The reference against the definition pair by pair, and the laws that attention obeys.
#include "core/reference.hpp"

#include "core/error_bound.hpp"
#include "core/errors.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/attention_oracle.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/core/within_bound.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

TEST_SUITE_BEGIN("core.reference");

namespace flashbound {
namespace {

using testing::exact_attention;
using testing::one_head;
using testing::WorstRatio;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// All of reference() against the exact answer, with its own bound as tolerance.
double worst_ratio(const Problem& p, const Inputs& in) {
  const Attention actual = reference(p, in);
  const testing::ExactAttention exact = exact_attention(p, in);
  WorstRatio ratio;
  for (Index s = 0; s < sequence_count(p); ++s) {
    const Sequence at = sequence(p, s);
    for (Index h = 0; h < p.num_heads_q; ++h) {
      const ErrorBound bound = error_bound(head_conditions(p, in, at, h), reference_rounding());
      for (Index r = 0; r < at.seqlen_q; ++r) {
        const Index row = at.q_begin + r;
        for (Index c = 0; c < p.head_dim_v; ++c) {
          ratio.add(actual.o.view()(at.batch, h, row, c), exact.o.view()(at.batch, h, row, c),
                    bound.o(r, c));
        }
        ratio.add(actual.lse.view()(at.batch, h, row, 0), exact.lse.view()(at.batch, h, row, 0),
                  bound.lse(r));
      }
    }
  }
  CHECK(ratio.count() == p.batch * p.num_heads_q * p.seqlen_q * (p.head_dim_v + 1));
  return ratio.worst();
}

TEST_CASE("the reference equals the definition on random problems of every feature") {
  for (std::uint64_t seed = 1000; seed < 1250; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const std::string text = testing::describe(random);
    CAPTURE(text);
    const OwnedInputs inputs = normal_inputs(random.problem, seed);
    REQUIRE(worst_ratio(random.problem, inputs.view()) <= 1);
  }
}

TEST_CASE("the reference equals the definition at the edges of its own blocks") {
  const Tile tile = kReferenceTile;
  for (const Index seqlen_q : {Index{1}, tile.block_q - 1, tile.block_q, tile.block_q + 1}) {
    for (const Index seqlen_kv : {Index{1}, tile.block_kv - 1, tile.block_kv, tile.block_kv + 1}) {
      for (const Index window_left : {-1, 0, 70}) {
        CAPTURE(seqlen_q);
        CAPTURE(seqlen_kv);
        CAPTURE(window_left);
        Problem p = one_head({seqlen_q, seqlen_kv, 3, 2});
        p.window_left = window_left;
        p.window_right = 0;
        const OwnedInputs inputs = normal_inputs(p, 11);
        REQUIRE(worst_ratio(p, inputs.view()) <= 1);
      }
    }
  }
}

TEST_CASE("empty tensors give an empty or a neutral output") {
  for (const Index batch : {0, 2}) {
    for (const Index seqlen_q : {0, 3}) {
      for (const Index seqlen_kv : {0, 3}) {
        CAPTURE(batch);
        CAPTURE(seqlen_q);
        CAPTURE(seqlen_kv);
        Problem p = one_head({seqlen_q, seqlen_kv, 2, 2});
        p.batch = batch;
        const OwnedInputs inputs = normal_inputs(p, 1);
        const Attention result = reference(p, inputs.view());
        CHECK(result.o.shape == std::array<Index, 4>{batch, 1, seqlen_q, 2});
        CHECK(result.lse.shape == std::array<Index, 4>{batch, 1, seqlen_q, 1});
        if (seqlen_kv > 0) continue;
        for (const double o : result.o.elements) CHECK(o == 0);
        for (const double lse : result.lse.elements) CHECK(lse == -kInfinity);
      }
    }
  }
}

// The same numbers laid out otherwise: `order` lists axes from outermost to innermost, and axes in
// `reversed` run backwards.
struct Layout {
  std::array<std::size_t, 4> order{};
  std::array<bool, 4> reversed{};
};

struct Relaid {
  std::vector<double> memory;
  TensorView<const double> view;
};

Relaid relay(const Tensor<double>& tensor, const Layout& layout) {
  Relaid result;
  // Gaps between elements, so that no axis has a stride of one.
  Index stride = 3;
  std::array<Index, 4> strides{};
  for (std::size_t k = 4; k-- > 0;) {
    strides[layout.order[k]] = stride;
    stride *= std::max<Index>(1, tensor.shape[layout.order[k]]);
  }
  result.memory.assign(static_cast<std::size_t>(stride), std::nan(""));
  Index origin = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (!layout.reversed[axis]) continue;
    origin += strides[axis] * (tensor.shape[axis] - 1);
    strides[axis] = -strides[axis];
  }
  const TensorView<double> writer{result.memory.data() + origin, tensor.shape, strides};
  const auto source = tensor.view();
  for (Index b = 0; b < tensor.shape[0]; ++b) {
    for (Index h = 0; h < tensor.shape[1]; ++h) {
      for (Index r = 0; r < tensor.shape[2]; ++r) {
        for (Index c = 0; c < tensor.shape[3]; ++c) writer(b, h, r, c) = source(b, h, r, c);
      }
    }
  }
  result.view = {writer.data, tensor.shape, strides};
  return result;
}

TEST_CASE("A8: strides of any order and sign give the same bits") {
  Problem p = one_head({5, 7, 3, 4});
  p.batch = 2;
  p.num_heads_q = 4;
  p.num_heads_kv = 2;
  const OwnedInputs inputs = normal_inputs(p, 17);
  const Attention dense = reference(p, inputs.view());
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  Index layouts = 0;
  do {
    for (unsigned signs = 0; signs < 16; ++signs) {
      const Layout layout{
          order, {(signs & 1U) != 0, (signs & 2U) != 0, (signs & 4U) != 0, (signs & 8U) != 0}};
      const Relaid q = relay(inputs.q, layout);
      const Relaid k = relay(inputs.k, layout);
      const Relaid v = relay(inputs.v, layout);
      const Attention strided = reference(p, {q.view, k.view, v.view});
      CAPTURE(signs);
      REQUIRE(strided.o.elements == dense.o.elements);
      REQUIRE(strided.lse.elements == dense.lse.elements);
      ++layouts;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(layouts == 24 * 16);
}

TEST_CASE("a stride of zero repeats one row or head or batch") {
  Problem p = one_head({3, 4, 2, 2});
  p.batch = 2;
  p.num_heads_q = p.num_heads_kv = 3;
  const OwnedInputs inputs = normal_inputs(p, 19);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CAPTURE(axis);
    Inputs broadcast = inputs.view();
    broadcast.q.strides[axis] = 0;
    broadcast.v.strides[axis] = 0;
    CHECK(worst_ratio(p, broadcast) <= 1);
  }
}

// Under a suite of its own, which the thread sanitizer runs.
TEST_CASE("A28 A35: any order of parts and any number of threads give the same bits" *
          doctest::test_suite("threads")) {
  Problem p = one_head({150, 90, 4, 3});
  p.batch = 2;
  p.num_heads_q = 2;
  p.window_right = 3;
  const OwnedInputs inputs = normal_inputs(p, 23);
  const Attention expected = reference(p, inputs.view());
  const ParallelFor backwards = [](Index count, const std::function<void(Index)>& body) {
    for (Index part = count; part-- > 0;) body(part);
  };
  const ParallelFor threads = [](Index count, const std::function<void(Index)>& body) {
    std::vector<std::thread> workers;
    for (Index first = 0; first < 3; ++first) {
      workers.emplace_back([=, &body] {
        for (Index part = first; part < count; part += 3) body(part);
      });
    }
    for (std::thread& worker : workers) worker.join();
  };
  for (const ParallelFor& parallel_for : {backwards, threads}) {
    const Attention actual = reference(p, inputs.view(), parallel_for);
    CHECK(actual.o.elements == expected.o.elements);
    CHECK(actual.lse.elements == expected.lse.elements);
    const HeadOutput head = reference_head(p, inputs.view(), sequence(p, 1), 1, parallel_for);
    bool same = true;
    for (Index r = 0; r < p.seqlen_q; ++r) {
      same = same && head.lse(r) == expected.lse.view()(1, 1, r, 0);
      for (Index c = 0; c < p.head_dim_v; ++c) {
        same = same && head.o(r, c) == expected.o.view()(1, 1, r, c);
      }
    }
    CHECK(same);
  }
}

TEST_CASE("an input of another shape than the problem's is named") {
  const Problem p = one_head({3, 4, 2, 5});
  const OwnedInputs inputs = normal_inputs(p, 1);
  const auto message = [&](const Inputs& in) -> std::string {
    try {
      reference(p, in);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message(inputs.view()) == "accepted");
  Inputs wrong = inputs.view();
  wrong.q.shape[3] = 3;
  CHECK(message(wrong) == "q = shape (1, 1, 3, 3): must be of shape (1, 1, 3, 2)");
  wrong = inputs.view();
  wrong.k.shape[2] = 3;
  CHECK(message(wrong) == "k = shape (1, 1, 3, 2): must be of shape (1, 1, 4, 2)");
  wrong = inputs.view();
  wrong.v.shape[1] = 2;
  CHECK(message(wrong) == "v = shape (1, 2, 4, 5): must be of shape (1, 1, 4, 5)");
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
