#include "experiments/distributions.hpp"

#include "tests/experiments/rejection.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace flashbound {
namespace {

using testing::contains;
using testing::rejection;

Problem dense_problem() {
  return {.batch = 2,
          .num_heads_q = 4,
          .num_heads_kv = 2,
          .seqlen_q = 9,
          .seqlen_kv = 50,
          .head_dim = 16,
          .head_dim_v = 8};
}

// Dense and packed (an empty sequence and one of a single key included), one channel, and scales
// of either sign.
std::vector<Problem> problems() {
  std::vector<Problem> all{dense_problem()};
  Problem packed = dense_problem();
  packed.batch = 1;
  packed.cu_seqlens_q = {0, 4, 5, 9};
  packed.cu_seqlens_kv = {0, 30, 30, 50};
  all.push_back(packed);
  packed.cu_seqlens_kv = {0, 1, 20, 50};
  all.push_back(packed);
  for (double scale : {-0.3, 2.0}) {
    all.push_back(dense_problem());
    all.back().softmax_scale = scale;
  }
  all.push_back(dense_problem());
  all.back().head_dim = 1;
  return all;
}

// Calls check(the logits of one query in the order of its sequence's keys) for every query.
void for_each_query(const Problem& problem, const Inputs& inputs,
                    const std::function<void(const std::vector<double>&)>& check) {
  for (Index s = 0; s < sequence_count(problem); ++s) {
    const Sequence seq = sequence(problem, s);
    for (Index h = 0; h < problem.num_heads_q; ++h) {
      for (Index i = 0; i < seq.seqlen_q; ++i) {
        std::vector<double> logits;
        for (Index j = 0; j < seq.seqlen_kv; ++j) {
          double dot = 0;
          for (Index c = 0; c < problem.head_dim; ++c) {
            dot += inputs.q(seq.batch, h, seq.q_begin + i, c) *
                   inputs.k(seq.batch, h / q_heads_per_kv_head(problem), seq.kv_begin + j, c);
          }
          logits.push_back(softmax_scale(problem) * dot);
        }
        check(logits);
      }
    }
  }
}

void for_each_query(std::string_view name,
                    const std::function<void(const std::vector<double>&)>& check) {
  for (const Problem& problem : problems()) {
    const OwnedInputs inputs = distribution_inputs(name, problem, 3);
    for_each_query(problem, inputs.view(), check);
  }
}

// A million values of one tensor.
std::vector<double> many_values(std::string_view name) {
  const Problem problem{.seqlen_q = 10000, .seqlen_kv = 1, .head_dim = 100, .head_dim_v = 1};
  return distribution_inputs(name, problem, 5).q.elements;
}

double mean_of(const std::vector<double>& values, const std::function<double(double)>& f) {
  double sum = 0;
  for (double x : values) sum += f(x);
  return sum / static_cast<double>(values.size());
}

bool same_values(const OwnedInputs& a, const OwnedInputs& b) {
  return a.q.elements == b.q.elements && a.k.elements == b.k.elements &&
         a.v.elements == b.v.elements;
}

}  // namespace

TEST_SUITE("experiments.distributions") {
  TEST_CASE("every distribution has the problem's shapes and follows its seed alone") {
    CHECK(distributions().size() == 10);
    for (const DistributionFacts& facts : distributions()) {
      CAPTURE(facts.name);
      CHECK(!facts.description.empty());
      CHECK(facts.description.size() < 80);
      for (const Problem& problem : problems()) {
        validate(problem, Emptiness::allowed);
        const OwnedInputs inputs = distribution_inputs(facts.name, problem, 1);
        CHECK(inputs.q.shape == std::array<Index, 4>{problem.batch, 4, 9, problem.head_dim});
        CHECK(inputs.k.shape == std::array<Index, 4>{problem.batch, 2, 50, problem.head_dim});
        CHECK(inputs.v.shape == std::array<Index, 4>{problem.batch, 2, 50, 8});
        CHECK(same_values(inputs, distribution_inputs(facts.name, problem, 1)));
        CHECK(same_values(inputs, distribution_inputs(facts.name, problem, 2)) ==
              (facts.name == "constant"));
      }
    }
  }

  TEST_CASE("an unknown distribution is refused with the list of known ones") {
    const std::string message =
        rejection([] { distribution_inputs("cauchy", dense_problem(), 1); });
    CHECK(contains(message, "distribution = cauchy: must be one of normal, uniform, "));
    CHECK(contains(message, "equal-keys"));
    Problem flat = dense_problem();
    flat.softmax_scale = 0;
    CHECK(contains(rejection([&] { distribution_inputs("attention-sink", flat, 1); }),
                   "softmax_scale = 0: must be nonzero"));
  }

  TEST_CASE("an empty problem has empty inputs") {
    const Problem empty{.batch = 0, .seqlen_q = 0, .seqlen_kv = 0, .head_dim = 4, .head_dim_v = 4};
    for (const DistributionFacts& facts : distributions()) {
      CHECK(distribution_inputs(facts.name, empty, 1).k.elements.empty());
    }
  }

  // Bounds are 6 standard deviations, which a fair generator leaves once in 5e8 seeds. Of n
  // values: the mean has variance v / n, and the mean square (m4 - v^2) / n with the fourth moment
  // m4; normal m4 = 3, uniform on [-1, 1) v = 1/3 and m4 = 1/5.
  TEST_CASE("normal and uniform values have their mean and variance and range") {
    const std::vector<double> normals = many_values("normal");
    const std::vector<double> uniforms = many_values("uniform");
    const double root = std::sqrt(static_cast<double>(normals.size()));
    const auto value = [](double x) { return x; };
    const auto square = [](double x) { return x * x; };
    CHECK(std::abs(mean_of(normals, value)) < 6 / root);
    CHECK(std::abs(mean_of(normals, square) - 1) < 6 * std::sqrt(2.0) / root);
    CHECK(std::abs(mean_of(uniforms, value)) < 6 * std::sqrt(1.0 / 3) / root);
    CHECK(std::abs(mean_of(uniforms, square) - 1.0 / 3) < 6 * std::sqrt(4.0 / 45) / root);
    CHECK(*std::min_element(uniforms.begin(), uniforms.end()) >= -1);
    CHECK(*std::max_element(uniforms.begin(), uniforms.end()) < 1);
  }

  // |x| > 6 happens to N(0, 1) twice in 1e9 and to N(0, 1 + 100) with the probability erfc below.
  // The mixture has v = 1 + 0.001 x 100 = 1.1, m4 = 3 (0.999 + 0.001 x 101^2).
  TEST_CASE("outliers are as frequent and as large as FlashAttention-3 has them") {
    const std::vector<double> values = many_values("outliers");
    const auto n = static_cast<double>(values.size());
    const double share = 0.001 * std::erfc(6 / std::sqrt(2 * 101.0)) + 0.999 * 2e-9;
    const double found = mean_of(values, [](double x) { return std::abs(x) > 6 ? 1.0 : 0.0; });
    CHECK(std::abs(found - share) < 6 * std::sqrt(share / n));
    const double fourth = 3 * (0.999 + 0.001 * 101 * 101);
    const double variance = mean_of(values, [](double x) { return x * x; });
    CHECK(std::abs(variance - 1.1) < 6 * std::sqrt((fourth - 1.21) / n));
  }

  TEST_CASE("constant inputs are all one") {
    const OwnedInputs inputs = distribution_inputs("constant", dense_problem(), 1);
    for (const Tensor<double>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
      CHECK(std::count(tensor->elements.begin(), tensor->elements.end(), 1.0) ==
            static_cast<std::ptrdiff_t>(tensor->elements.size()));
    }
  }

  TEST_CASE("every query's logits increase and decrease strictly by about sixteen in all") {
    for_each_query("increasing-scores", [](const std::vector<double>& logits) {
      CHECK(std::adjacent_find(logits.begin(), logits.end(), std::greater_equal<>()) ==
            logits.end());
      // q is 1/2 to 3/2, and from the first key to the last it is n - 2 to n steps of 16 / (n d).
      if (logits.empty()) return;
      const auto n = static_cast<double>(logits.size());
      CHECK(logits.back() - logits.front() > 16 * 0.5 * (n - 2) / n);
      CHECK(logits.back() - logits.front() < 16 * 1.5);
    });
    for_each_query("decreasing-scores", [](const std::vector<double>& logits) {
      CHECK(std::adjacent_find(logits.begin(), logits.end(), std::less_equal<>()) == logits.end());
    });
  }

  // The other channels' logits have variance of about 1 (4 at the scale 2 where head_dim is 16:
  // 2^2 x 15 = 60, so sigma is 8); 100 exceeds 8 sigma of a difference.
  TEST_CASE("the huge key exceeds every other by about a thousand") {
    for (bool first : {true, false}) {
      for_each_query(first ? "huge-key-first" : "huge-key-last", [&](std::vector<double> logits) {
        if (logits.size() < 2) return;
        if (!first) std::reverse(logits.begin(), logits.end());
        const double others = *std::max_element(logits.begin() + 1, logits.end());
        CHECK(std::abs(logits.front() - others - 1000) < 100);
      });
    }
  }

  TEST_CASE("the first four keys are eight above the others on average") {
    const Problem problem{.seqlen_q = 100, .seqlen_kv = 404, .head_dim = 64, .head_dim_v = 1};
    const OwnedInputs inputs = distribution_inputs("attention-sink", problem, 4);
    double difference = 0;
    for_each_query(problem, inputs.view(), [&](const std::vector<double>& logits) {
      for (std::size_t j = 0; j < logits.size(); ++j) {
        difference += j < 4 ? logits[j] / 400 : -logits[j] / 40000;
      }
    });
    // Given the keys, a query's mean difference has variance |mean sink key - mean key|^2 / 64,
    // about 1/4; 100 queries have the same keys but are independent: sigma is 1/20. It is 1.5 times
    // that at most, since |...|^2 has 63 degrees of freedom.
    CHECK(std::abs(difference - 8) < 6.0 / 20 * 1.5);
  }

  TEST_CASE("equal keys give each query equal logits") {
    for_each_query("equal-keys", [](const std::vector<double>& logits) {
      for (double logit : logits) CHECK(logit == logits.front());
    });
  }

  TEST_CASE("rounding to fp32 is round_to_fp32 and raised keys fit the formats of kernels") {
    OwnedInputs ours = distribution_inputs("normal", dense_problem(), 1);
    OwnedInputs known = normal_inputs(dense_problem(), 1);
    round_to(ours, float_format(NumberFormat::fp32));
    round_to_fp32(known);
    CHECK(same_values(ours, known));
    // A ramp stays in order when it is rounded.
    OwnedInputs ramp = distribution_inputs("increasing-scores", dense_problem(), 1);
    round_to(ramp, float_format(NumberFormat::bf16));
    for_each_query(dense_problem(), ramp.view(), [](const std::vector<double>& logits) {
      CHECK(std::is_sorted(logits.begin(), logits.end()));
    });
    const Problem wide{.seqlen_q = 1, .seqlen_kv = 2, .head_dim = 256, .head_dim_v = 1};
    for (double x : distribution_inputs("huge-key-first", wide, 1).k.elements) {
      CHECK(std::abs(x) < float_format(NumberFormat::fp8e4m3).largest);
    }
  }
}

}  // namespace flashbound
