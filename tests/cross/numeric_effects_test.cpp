// What a program touches, shown by effect: asking Schedule twice would prove nothing. A NaN planted
// in a key or value must reach exactly the rows whose definition sees it, and a changed value must
// change exactly those rows.
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 400;

// The definition, written out: bottom-right alignment, inclusive window, block mask.
bool sees(const Problem& p, const Sequence& at, Index query, Index key) {
  const Index diagonal = query + at.seqlen_kv - at.seqlen_q;
  if (p.window_left >= 0 && key < diagonal - p.window_left) return false;
  if (p.window_right >= 0 && key > diagonal + p.window_right) return false;
  if (!p.block_mask) return true;
  const BlockMask& mask = *p.block_mask;
  const Index cell = (query / mask.block_q) * mask.cols + key / mask.block_kv;
  return mask.cells[static_cast<std::size_t>(cell)] != 0;
}

struct Planted {
  testing::RandomCase random;
  OwnedInputs clean;
  Sequence at;
  Index head = 0;
  Index key = 0;  // within the sequence

  // The first column of the planted key's row in K or V.
  double& value(Tensor<double>& tensor) const {
    const Index kv_head = head / q_heads_per_kv_head(random.problem);
    return tensor.view()(at.batch, kv_head, at.kv_begin + key, 0);
  }
};

Planted plant(std::uint64_t seed) {
  Planted result{testing::random_case(seed), {}, {}, 0, 0};
  const Problem& p = result.random.problem;
  result.clean = normal_inputs(p, seed);
  std::mt19937_64 engine(seed + 1);
  const auto below = [&](Index n) {
    return static_cast<Index>(engine() % static_cast<std::uint64_t>(n));
  };
  result.at = sequence(p, below(sequence_count(p)));
  result.head = below(p.num_heads_q);
  if (result.at.seqlen_kv > 0) result.key = below(result.at.seqlen_kv);
  return result;
}

NumericRun run(const Algorithm& algorithm, const Planted& planted, const OwnedInputs& inputs) {
  return run_numeric(algorithm.program(), planted.random.problem, planted.random.tile,
                     inputs.view(), planted.at, planted.head, NumberFormat::fp64);
}

bool row_has_nan(const HeadTensor& o, Index row) {
  for (Index c = 0; c < o.cols; ++c) {
    if (std::isnan(o(row, c))) return true;
  }
  return false;
}

// Largest difference within a row of O.
double row_difference(const HeadTensor& a, const HeadTensor& b, Index row) {
  double worst = 0;
  for (Index c = 0; c < a.cols; ++c) worst = std::max(worst, std::abs(a(row, c) - b(row, c)));
  return worst;
}

// A non-finite V switches the order in which P V is summed. Two orders of m additions of terms
// p v with sum p = row_sum differ by at most 2 gamma_m max|v| after division, and m is the number
// of keys plus a rescale and an addition a block.
double reordering_bound(const Planted& planted) {
  double largest = 0;
  for (const double v : planted.clean.v.elements) largest = std::max(largest, std::abs(v));
  const double m = 3.0 * static_cast<double>(planted.at.seqlen_kv) + 8;
  const double gamma = m * 0x1p-53 / (1 - m * 0x1p-53);
  return 2 * gamma * largest;
}

// Plants a NaN in K or V: rows that see it become NaN, the others move by at most `allowed`.
template <class Allowed>
void check_nan_reach(Tensor<double> OwnedInputs::*tensor, const Allowed& allowed) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Planted planted = plant(seed);
    if (planted.at.seqlen_kv == 0) continue;
    OwnedInputs poisoned = planted.clean;
    planted.value(poisoned.*tensor) = std::numeric_limits<double>::quiet_NaN();
    for (const Algorithm& algorithm : algorithms(Pass::forward)) {
      const std::string what =
          std::string(algorithm.name) + ": " + testing::describe(planted.random);
      CAPTURE(seed);
      CAPTURE(what);
      const NumericRun clean = run(algorithm, planted, planted.clean);
      const NumericRun touched = run(algorithm, planted, poisoned);
      const HeadTensor& before = *clean.find("o");
      const HeadTensor& after = *touched.find("o");
      for (Index row = 0; row < after.rows; ++row) {
        CAPTURE(row);
        const bool seen = sees(planted.random.problem, planted.at, row, planted.key);
        CHECK(row_has_nan(after, row) == seen);
        if (!seen) CHECK(row_difference(before, after, row) <= allowed(planted));
      }
    }
  }
}

}  // namespace

TEST_SUITE("cross.effects") {
  TEST_CASE("a NaN key reaches exactly the rows that see it") {
    // Its own column of scores is all that a masked key touches.
    check_nan_reach(&OwnedInputs::k, [](const Planted&) { return 0.0; });
  }

  TEST_CASE("a NaN value reaches exactly the rows that see it") {
    check_nan_reach(&OwnedInputs::v, reordering_bound);
  }

  TEST_CASE("a changed value changes exactly the rows that see it") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const Planted planted = plant(seed);
      if (planted.at.seqlen_kv == 0) continue;
      OwnedInputs changed = planted.clean;
      planted.value(changed.v) += 1e6;  // visible at any weight above 1e-20
      for (const Algorithm& algorithm : algorithms(Pass::forward)) {
        const std::string what =
            std::string(algorithm.name) + ": " + testing::describe(planted.random);
        CAPTURE(seed);
        CAPTURE(what);
        const NumericRun clean = run(algorithm, planted, planted.clean);
        const NumericRun touched = run(algorithm, planted, changed);
        for (Index row = 0; row < clean.find("o")->rows; ++row) {
          CAPTURE(row);
          const bool seen = sees(planted.random.problem, planted.at, row, planted.key);
          const double moved = row_difference(*clean.find("o"), *touched.find("o"), row);
          CHECK((moved != 0) == seen);
        }
      }
    }
  }
}

}  // namespace flashbound
