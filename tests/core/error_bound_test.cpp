// The derived bounds against answers of higher precision: they must hold on every row, and must
// not be so wide that they hold for anything.
#include "core/error_bound.hpp"

#include "core/errors.hpp"
#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/attention_oracle.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/online_softmax.hpp"
#include "tests/core/random_problem.hpp"
#include "tests/core/within_bound.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

TEST_SUITE_BEGIN("core.error_bound");

namespace flashbound {
namespace {

using testing::exact_attention;
using testing::ExactAttention;
using testing::kKeyByKey;
using testing::one_head;
using testing::online_row;
using testing::OnlineRow;
using testing::Weights;
using testing::WorstRatio;

struct Ratios {
  WorstRatio reference, online;
  double bound_max = 0;  // of the reference's finite bounds
};

// Every head and sequence of a problem: the reference, and the online softmax in Scalar, against
// the exact answer. Inputs must be exact in Scalar.
template <class Scalar>
void compare(const Problem& p, const Inputs& in, Ratios& ratios) {
  const NumberFormat format = sizeof(Scalar) == 4 ? NumberFormat::fp32 : NumberFormat::fp64;
  const ExactAttention exact = exact_attention(p, in);
  const auto exact_o = exact.o.view();
  const auto exact_lse = exact.lse.view();
  for (Index s = 0; s < sequence_count(p); ++s) {
    const Sequence at = sequence(p, s);
    for (Index head = 0; head < p.num_heads_q; ++head) {
      const HeadConditions conditions = head_conditions(p, in, at, head);
      const ErrorBound own = error_bound(conditions, reference_rounding());
      const ErrorBound allowed =
          error_bound(conditions, program_rounding(format, schedule_for(p, kKeyByKey, at)));
      const HeadOutput reference = reference_head(p, in, at, head);
      for (Index row = 0; row < at.seqlen_q; ++row) {
        const OnlineRow<Scalar> online = online_row<Scalar>(p, in, at, head, row);
        for (Index c = 0; c < p.head_dim_v; ++c) {
          const long double value = exact_o(at.batch, head, at.q_begin + row, c);
          ratios.reference.add(reference.o(row, c), value, own.o(row, c));
          ratios.online.add(online.o[static_cast<std::size_t>(c)], value, allowed.o(row, c));
          if (std::isfinite(own.o(row, c))) {
            ratios.bound_max = std::max(ratios.bound_max, own.o(row, c));
          }
        }
        const long double value = exact_lse(at.batch, head, at.q_begin + row, 0);
        ratios.reference.add(reference.lse(row), value, own.lse(row));
        ratios.online.add(online.lse, value, allowed.lse(row));
      }
    }
  }
}

TEST_CASE("random problems of every feature stay within the bounds in fp64 and in fp32") {
  Ratios fp64, fp32;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    const testing::RandomCase random = testing::random_case(seed);
    const std::string text = testing::describe(random);
    CAPTURE(text);
    OwnedInputs inputs = normal_inputs(random.problem, seed);
    round_to_fp32(inputs);
    compare<double>(random.problem, inputs.view(), fp64);
    compare<float>(random.problem, inputs.view(), fp32);
    REQUIRE(fp64.reference.worst() <= 1);
    REQUIRE(fp64.online.worst() <= 1);
    REQUIRE(fp32.online.worst() <= 1);
  }
  MESSAGE("worst error/bound: reference "
          << fp64.reference.worst() << ", online fp64 " << fp64.online.worst() << ", online fp32 "
          << fp32.online.worst() << ", over " << fp32.online.count() << " elements");
  // Values here are a few units: a bound of 1e-9 would be vacuous in fp64.
  CHECK(fp64.bound_max < 1e-9);
  // Nor is it so wide that the errors it covers are out of sight.
  CHECK(fp64.online.worst() > 1e-3);
  CHECK(fp32.online.worst() > 1e-3);
}

struct Hostile {
  std::string name;
  std::function<void(Problem&, OwnedInputs&)> shape;
};

// Key j gets the logit `logit(j)` for every query.
void set_logits(Problem& p, OwnedInputs& in, const std::function<double(Index)>& logit) {
  p.softmax_scale = 1;
  for (double& q : in.q.elements) q = 1.0 / static_cast<double>(p.head_dim);
  const auto k = in.k.view();
  for (Index j = 0; j < p.seqlen_kv; ++j) {
    for (Index c = 0; c < p.head_dim; ++c) k(0, 0, j, c) = logit(j);
  }
}

void scale_values(OwnedInputs& in, double factor) {
  for (double& v : in.v.elements) v *= factor;
}

std::vector<Hostile> hostile_cases() {
  return {
      {"logits of a few hundred", [](Problem& p, OwnedInputs&) { p.softmax_scale = 40.0; }},
      {"logits of a hundred thousand", [](Problem& p, OwnedInputs&) { p.softmax_scale = 1e4; }},
      {"logits whose rounding alone decides the weights",
       [](Problem& p, OwnedInputs&) { p.softmax_scale = 1e8; }},
      {"the maximum rises with every key",
       [](Problem& p, OwnedInputs& in) {
         set_logits(p, in, [](Index j) { return 0.5 * static_cast<double>(j); });
       }},
      {"the maximum rises by more than the exponent range",
       [](Problem& p, OwnedInputs& in) {
         set_logits(p, in, [](Index j) { return 130.0 * static_cast<double>(j); });
       }},
      {"the maximum never rises",
       [](Problem& p, OwnedInputs& in) {
         set_logits(p, in, [](Index j) { return -0.5 * static_cast<double>(j); });
       }},
      {"weights at the edge of underflow",
       [](Problem& p, OwnedInputs& in) {
         set_logits(p, in,
                    [](Index j) { return j == 0 ? 0.0 : -86.0 - static_cast<double>(j % 20); });
         scale_values(in, 1e30);
         // Only the small weights have values, so that losing one shows.
         std::fill_n(in.v.elements.begin(), p.head_dim_v, 0.0);
       }},
      {"values that cancel",
       [](Problem& p, OwnedInputs& in) {
         set_logits(p, in, [](Index) { return 1.0; });
         for (std::size_t i = 0; i < in.v.elements.size(); ++i) {
           const bool odd = (i / static_cast<std::size_t>(p.head_dim_v)) % 2 == 1;
           in.v.elements[i] = (odd ? -1e6 : 1e6) + static_cast<double>(i % 7);
         }
       }},
      {"products q k that cancel",
       [](Problem& p, OwnedInputs& in) {
         for (std::size_t i = 0; i < in.q.elements.size(); ++i) {
           in.q.elements[i] = static_cast<double>(1 + i % 3) * (i % 2 == 0 ? 300 : -300);
         }
         for (double& k : in.k.elements) k = 1 + 0.01 * k;
         p.softmax_scale = 0.01;
       }},
      {"subnormal values", [](Problem&, OwnedInputs& in) { scale_values(in, 1e-42); }},
      {"a large sink", [](Problem& p, OwnedInputs&) { p.sink = {60.0}; }},
      {"a softcap far below the logits",
       [](Problem& p, OwnedInputs&) {
         p.softmax_scale = 30;
         p.softcap = 0.5;
       }},
      {"a steep ALiBi slope", [](Problem& p, OwnedInputs&) { p.alibi_slopes = {50.0}; }},
  };
}

TEST_CASE("hostile data stays within the bounds in fp64 and in fp32") {
  for (const Hostile& hostile : hostile_cases()) {
    CAPTURE(hostile.name);
    Problem p = one_head({3, 257, 16, 5});
    p.window_right = 0;
    OwnedInputs inputs = normal_inputs(p, 7);
    hostile.shape(p, inputs);
    round_to_fp32(inputs);
    Ratios fp64, fp32;
    compare<double>(p, inputs.view(), fp64);
    compare<float>(p, inputs.view(), fp32);
    CHECK(fp64.reference.worst() <= 1);
    CHECK(fp64.online.worst() <= 1);
    CHECK(fp32.online.worst() <= 1);
    MESSAGE(hostile.name << ": reference " << fp64.reference.worst() << ", online fp64 "
                         << fp64.online.worst() << ", fp32 " << fp32.online.worst());
  }
}

ErrorBound bound_of(const Problem& p, const Inputs& in, NumberFormat format) {
  const Sequence at = sequence(p, 0);
  return error_bound(head_conditions(p, in, at, 0),
                     program_rounding(format, schedule_for(p, kKeyByKey, at)));
}

TEST_CASE("weights rounded to bf16 break the fp32 bound") {
  const Problem p = one_head({4, 100, 16, 8});
  OwnedInputs inputs = normal_inputs(p, 3);
  round_to_fp32(inputs);
  const ExactAttention exact = exact_attention(p, inputs.view());
  const ErrorBound allowed = bound_of(p, inputs.view(), NumberFormat::fp32);
  WorstRatio ratio;
  for (Index row = 0; row < p.seqlen_q; ++row) {
    const auto online =
        online_row<float>(p, inputs.view(), sequence(p, 0), 0, row, Weights::rounded_to_bf16);
    for (Index c = 0; c < p.head_dim_v; ++c) {
      ratio.add(online.o[static_cast<std::size_t>(c)], exact.o.view()(0, 0, row, c),
                allowed.o(row, c));
    }
  }
  CHECK(ratio.worst() > 1);
}

TEST_CASE("what may overflow or is not finite has an infinite bound") {
  const Problem p = one_head({2, 3, 4, 2});
  const auto bounds = [&](const std::function<void(OwnedInputs&)>& change, NumberFormat format) {
    OwnedInputs inputs = normal_inputs(p, 5);
    change(inputs);
    return bound_of(p, inputs.view(), format);
  };
  const auto all_infinite = [](const ErrorBound& bound) {
    return (bound.o.array() == HUGE_VAL).all() && (bound.lse.array() == HUGE_VAL).all();
  };
  const auto all_finite = [](const ErrorBound& bound) {
    return bound.o.allFinite() && bound.lse.allFinite();
  };
  const auto large_keys = [](OwnedInputs& in) {
    for (double& x : in.k.elements) x *= 1e39;
  };
  CHECK(all_infinite(bounds(large_keys, NumberFormat::fp32)));
  const auto large_values = [](OwnedInputs& in) {
    for (double& x : in.v.elements) x = 2e38;
  };
  CHECK(all_infinite(bounds(large_values, NumberFormat::fp32)));
  CHECK(all_finite(bounds(large_values, NumberFormat::fp64)));

  const auto nan_key = [](OwnedInputs& in) { in.k.elements[4] = std::nan(""); };
  CHECK(all_infinite(bounds(nan_key, NumberFormat::fp64)));
  const auto nan_value = [](OwnedInputs& in) { in.v.elements[2] = std::nan(""); };
  const ErrorBound one_column = bounds(nan_value, NumberFormat::fp64);
  CHECK(one_column.o.col(0).array().isInf().all());
  CHECK(one_column.o.col(1).allFinite());
  CHECK(one_column.lse.allFinite());
  CHECK_THROWS_AS(bounds(large_values, NumberFormat::bf16), ConfigError);
}

TEST_CASE("a row that sees nothing is exact and a hidden NaN leaves the bound alone") {
  Problem p = one_head({4, 2, 3, 2});
  p.window_right = 0;
  OwnedInputs inputs = normal_inputs(p, 5);
  inputs.k.view()(0, 0, 1, 0) = inputs.v.view()(0, 0, 1, 0) = std::nan("");
  const ErrorBound bound = bound_of(p, inputs.view(), NumberFormat::fp64);
  CHECK((bound.o.topRows(2).array() == 0).all());
  CHECK((bound.lse.head(2).array() == 0).all());
  CHECK(bound.o.row(2).allFinite());
  CHECK(bound.o.row(2).maxCoeff() < 1e-12);
  CHECK(bound.o.row(3).array().isInf().all());
}

TEST_CASE("the bound grows with the roundoff and the number of updates") {
  const Problem p = one_head({2, 50, 8, 2});
  const OwnedInputs inputs = normal_inputs(p, 5);
  const HeadConditions conditions = head_conditions(p, inputs.view(), sequence(p, 0), 0);
  RoundingModel model = reference_rounding();
  const ErrorBound base = error_bound(conditions, model);
  model.updates = 10;
  const ErrorBound updated = error_bound(conditions, model);
  for (FormatModel* format : {&model.scores, &model.statistics, &model.accumulator,
                              &model.scores_product.sum, &model.values_product.sum}) {
    format->unit_roundoff *= 2;
  }
  const ErrorBound coarser = error_bound(conditions, model);
  CHECK((updated.o.array() > base.o.array()).all());
  CHECK((coarser.o.array() > updated.o.array()).all());
  CHECK((coarser.lse.array() > updated.lse.array()).all());
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
