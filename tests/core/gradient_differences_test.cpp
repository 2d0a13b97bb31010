// Reference gradients against central differences of the reference: a second route that shares none
// of the backward formulas.
//
// With f = sum dO o O as a function of one element x, and a step h,
//   |(f(x + h) - f(x - h)) / 2h - f'(x)| <= h^2 / 6 max |f'''| + (error of f(x + h) - f(x - h)) /
//   2h.
//
// TRUNCATION. f is linear in V. Along an element of Q or K a row's part of f is the mean of
// w_j = dP_ij under softmax(L), the sink being one more w = 0. Its third derivative is made of
// joint cumulants of w and the derivatives of L,
//   k(w, L', L', L') + 3 k(w, L', L'') + k(w, L'''),
// and |k(w, a, a, a)| = |E w~ a~^3 - 3 E w~ a~ E a~^2| <= 4 W A^3, |k(w, a, b)| <= W A B,
// |k(w, b)| <= W B for ranges W, A, B. If the scaled product moves by at most a dx, then with a
// softcap c, of which |tanh''| <= 0.77 and |tanh'''| <= 2, the ranges of L', L'' and L''' are at
// most 2 a, 2 a^2 0.77 / c and 2 a^3 2 / c^2; without, the last two are 0. ALiBi moves nothing.
//
// ROUNDING. O errs by core/error_bound.hpp's bound on either side; differences and their sum round
// once a term and once more for each that follows.
#include "core/error_bound.hpp"
#include "core/gradients.hpp"
#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/gradient_oracle.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace flashbound {
namespace {

constexpr double kStep = 0x1p-13;
constexpr std::uint64_t kCases = 300;
constexpr int kElements = 4;  // of each operand of a problem

enum class Input { q, k, v };

// One element of Q, K or V.
struct Element {
  Sequence at{};
  Index head = 0;  // of the operand
  Index row = 0;   // within the sequence
  Index col = 0;
};

struct Trial {
  const Problem& problem;
  OwnedInputs inputs;
  const Tensor<double>& grad_o;
  Input operand;
  Element element;

  // The query heads that read the element.
  Interval heads() const {
    if (operand == Input::q) return {element.head, element.head + 1};
    const Index ratio = q_heads_per_kv_head(problem);
    return {element.head * ratio, (element.head + 1) * ratio};
  }
  // The queries of the sequence that may read it.
  Interval rows() const {
    return operand == Input::q ? Interval{element.row, element.row + 1}
                               : Interval{0, element.at.seqlen_q};
  }
  double& value() {
    Tensor<double>& tensor = operand == Input::q   ? inputs.q
                             : operand == Input::k ? inputs.k
                                                   : inputs.v;
    const Index begin = operand == Input::q ? element.at.q_begin : element.at.kv_begin;
    return tensor.view()(element.at.batch, element.head, begin + element.row, element.col);
  }
  double go(Index head, Index row, Index col) const {
    return grad_o.view()(element.at.batch, head, element.at.q_begin + row, col);
  }
};

// The rows of O that may move, and what their errors make of f.
struct Side {
  std::vector<RowMatrix> o{};  // by head
  double error = 0;
};

Side evaluate(const Trial& trial) {
  Side side;
  const Inputs inputs = trial.inputs.view();
  const Interval rows = trial.rows();
  for (Index h = trial.heads().begin; h < trial.heads().end; ++h) {
    const Sequence& at = trial.element.at;
    side.o.push_back(reference_head(trial.problem, inputs, at, h).o);
    const ErrorBound bound =
        error_bound(head_conditions(trial.problem, inputs, at, h), reference_rounding());
    for (Index r = rows.begin; r < rows.end; ++r) {
      for (Index c = 0; c < trial.problem.head_dim_v; ++c) {
        side.error += std::abs(trial.go(h, r, c)) * bound.o(r, c);
      }
    }
  }
  return side;
}

// Largest |f'''| along the element.
double third_derivative(const Trial& trial) {
  if (trial.operand == Input::v) return 0;
  const Inputs in = trial.inputs.view();
  const Sequence& at = trial.element.at;
  double sum = 0;
  for (Index h = trial.heads().begin; h < trial.heads().end; ++h) {
    const Index kv = h / q_heads_per_kv_head(trial.problem);
    for (Index r = trial.rows().begin; r < trial.rows().end; ++r) {
      double low = 0, high = 0, slope = 0;  // 0 as the sink's w
      for (Index j = 0; j < at.seqlen_kv; ++j) {
        double w = 0;
        for (Index c = 0; c < trial.problem.head_dim_v; ++c) {
          w += trial.go(h, r, c) * in.v(at.batch, kv, at.kv_begin + j, c);
        }
        low = std::min(low, w);
        high = std::max(high, w);
        if (trial.operand == Input::q) {
          slope = std::max(slope, std::abs(in.k(at.batch, kv, at.kv_begin + j, trial.element.col)));
        }
      }
      if (trial.operand == Input::k) {
        slope = std::abs(in.q(at.batch, h, at.q_begin + r, trial.element.col));
      }
      const double a = std::abs(softmax_scale(trial.problem)) * slope;
      const double c = trial.problem.softcap;
      double shape = 4 * std::pow(2 * a, 3);
      if (c > 0) shape += 3 * (2 * a) * (2 * a * a * 0.77 / c) + 2 * a * a * a * 2 / (c * c);
      sum += (high - low) * shape;
    }
  }
  return sum;
}

struct Difference {
  double slope = 0;
  double allowed = 0;
};

Difference central_difference(Trial trial) {
  const double x = trial.value();
  const double truncation = kStep * kStep / 6 * third_derivative(trial);
  trial.value() = x + kStep;  // exact: x has the 24 bits of fp32
  const Side above = evaluate(trial);
  trial.value() = x - kStep;
  const Side below = evaluate(trial);
  double sum = 0, magnitude = 0, terms = 2;
  const Interval rows = trial.rows();
  for (std::size_t h = 0; h < above.o.size(); ++h) {
    for (Index r = rows.begin; r < rows.end; ++r) {
      for (Index c = 0; c < trial.problem.head_dim_v; ++c) {
        const double term = trial.go(trial.heads().begin + static_cast<Index>(h), r, c) *
                            (above.o[h](r, c) - below.o[h](r, c));
        sum += term;
        magnitude += std::abs(term);
        terms += 1;
      }
    }
  }
  const double rounding = above.error + below.error + terms * 0x1p-52 * magnitude;
  return {sum / (2 * kStep), truncation + rounding / (2 * kStep)};
}

}  // namespace

TEST_SUITE("core.gradients") {
  TEST_CASE("gradients = central differences of the reference on random problems") {
    double tightest = 1;
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const Problem& p = random.problem;
      const std::string what = testing::describe(random);
      CAPTURE(seed);
      CAPTURE(what);
      OwnedInputs inputs = normal_inputs(p, seed);
      round_to_fp32(inputs);
      const Tensor<double> grad_o = testing::normal_grad_o(p, seed);
      const Gradients gradients = reference_gradients(p, inputs.view(), grad_o.view());
      std::mt19937_64 engine(seed);
      const auto below = [&](Index n) {
        return static_cast<Index>(engine() % static_cast<std::uint64_t>(n));
      };
      for (int repeat = 0; repeat < 3 * kElements; ++repeat) {
        const auto operand = static_cast<Input>(repeat % 3);
        Element element;
        element.at = sequence(p, below(sequence_count(p)));
        const bool of_q = operand == Input::q;
        const Index rows = of_q ? element.at.seqlen_q : element.at.seqlen_kv;
        if (rows == 0) continue;
        element.head = below(of_q ? p.num_heads_q : p.num_heads_kv);
        element.row = below(rows);
        element.col = below(operand == Input::v ? p.head_dim_v : p.head_dim);
        const Difference found = central_difference({p, inputs, grad_o, operand, element});
        const Tensor<double>& gradient = of_q                  ? gradients.q
                                         : operand == Input::k ? gradients.k
                                                               : gradients.v;
        const Index begin = of_q ? element.at.q_begin : element.at.kv_begin;
        const double computed =
            gradient.view()(element.at.batch, element.head, begin + element.row, element.col);
        CAPTURE(repeat);
        // The gradient's own error is far below that of a difference: 1e-10 bounds it
        // ("the bounds are small", gradients_test.cpp) for each query head of a group.
        const double allowed = found.allowed + 1e-10 * static_cast<double>(p.num_heads_q);
        CHECK(std::abs(computed - found.slope) <= allowed);
        if (computed != 0) tightest = std::min(tightest, allowed / std::abs(computed));
      }
    }
    CHECK(tightest < 1e-8);  // not every wrong gradient would pass
  }
}

}  // namespace flashbound
