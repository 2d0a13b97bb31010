#include "experiments/distributions.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>

namespace flashbound {
namespace {

using Draw = double (*)(std::mt19937_64&);

constexpr double kOutlierShare = 0.001;
constexpr double kOutlierSigma = 10;  // variance 100
constexpr double kHugeLogit = 1000;   // exp() of its distance from the others is 0 in every format
constexpr double kSinkLogit = 8;
constexpr Index kSinkKeys = 4;
constexpr double kRampLogit = 16;  // from first to last key; their weights differ by e^16 = 9e6

double draw_symmetric(std::mt19937_64& engine) { return 2 * uniform(engine) - 1; }

// Shah et al. 2024 (FlashAttention-3, arXiv 2407.08608, section 4.3): N(0, 1) + N(0, 100) b, b one
// with probability 0.001. The second argument of N is the variance.
double draw_with_outliers(std::mt19937_64& engine) {
  const double value = normal(engine);
  return uniform(engine) < kOutlierShare ? value + kOutlierSigma * normal(engine) : value;
}

double draw_one(std::mt19937_64&) { return 1; }

OwnedInputs independent_inputs(const Problem& p, std::uint64_t seed, Draw draw) {
  std::mt19937_64 engine(seed);
  OwnedInputs inputs{Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}),
                     Tensor<double>({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}),
                     Tensor<double>({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v})};
  for (Tensor<double>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (double& value : tensor->elements) value = draw(engine);
  }
  return inputs;
}

// Calls visit(the key's row of head_dim values, its index in its sequence, the sequence's length)
// for every key of every head.
using VisitKey = std::function<void(std::span<double> key, Index index, Index seqlen)>;

void for_each_key(OwnedInputs& inputs, const Problem& problem, const VisitKey& visit) {
  const TensorView<double> k = inputs.k.view();
  for (Index s = 0; s < sequence_count(problem); ++s) {
    const Sequence keys = sequence(problem, s);
    for (Index h = 0; h < problem.num_heads_kv; ++h) {
      for (Index j = 0; j < keys.seqlen_kv; ++j) {
        double* row = k.data + keys.batch * k.strides[0] + h * k.strides[1] +
                      (keys.kv_begin + j) * k.strides[2];
        visit({row, static_cast<std::size_t>(problem.head_dim)}, j, keys.seqlen_kv);
      }
    }
  }
}

double nonzero_scale(const Problem& problem, std::string_view name) {
  const double scale = softmax_scale(problem);
  if (scale == 0) reject("softmax_scale", "0", "nonzero for the distribution " + std::string(name));
  return scale;
}

// Normal inputs but for channel 0, which adds `logit` to the raised keys of every query and
// nothing to the others. Query and key get equal shares of it, to stay within narrow formats.
OwnedInputs raised_keys(const Problem& problem, std::uint64_t seed, std::string_view name,
                        double logit, bool (*is_raised)(Index index, Index seqlen)) {
  OwnedInputs inputs = normal_inputs(problem, seed);
  const double scale = nonzero_scale(problem, name);
  const double share = std::sqrt(logit / std::abs(scale));
  const auto stride = static_cast<std::size_t>(problem.head_dim);
  for (std::size_t i = 0; i < inputs.q.elements.size(); i += stride) {
    inputs.q.elements[i] = std::copysign(share, scale);
  }
  for_each_key(inputs, problem, [&](std::span<double> key, Index index, Index seqlen) {
    key[0] = is_raised(index, seqlen) ? share : 0;
  });
  return inputs;
}

// Every channel of the keys rises (or falls) from one to the next by a random step, and all of a
// query's channels have the scale's sign; so its logits do the same.
OwnedInputs ramp(const Problem& problem, std::uint64_t seed, std::string_view name, bool rising) {
  std::mt19937_64 engine(seed);
  OwnedInputs inputs = normal_inputs(problem, engine());
  const double scale = nonzero_scale(problem, name);
  for (double& value : inputs.q.elements) value = std::copysign(0.5 + uniform(engine), scale);
  const double range = kRampLogit / (std::abs(scale) * static_cast<double>(problem.head_dim));
  for_each_key(inputs, problem, [&](std::span<double> key, Index index, Index seqlen) {
    const Index rank = rising ? index : seqlen - 1 - index;
    for (double& value : key) {
      value = range * (static_cast<double>(rank) + uniform(engine)) / static_cast<double>(seqlen);
    }
  });
  return inputs;
}

OwnedInputs equal_keys(const Problem& problem, std::uint64_t seed) {
  OwnedInputs inputs = normal_inputs(problem, seed);
  std::span<const double> first;
  for_each_key(inputs, problem, [&](std::span<double> key, Index index, Index) {
    if (index == 0) {
      first = key;
    } else {
      std::copy(first.begin(), first.end(), key.begin());
    }
  });
  return inputs;
}

bool is_first(Index index, Index) { return index == 0; }
bool is_last(Index index, Index seqlen) { return index == seqlen - 1; }
bool is_sink(Index index, Index) { return index < kSinkKeys; }

struct Distribution {
  DistributionFacts facts;
  OwnedInputs (*build)(const Problem&, std::uint64_t seed);
};

constexpr std::array kDistributions{
    Distribution{{"normal", "q, k, v standard normal"},
                 [](const Problem& p, std::uint64_t seed) { return normal_inputs(p, seed); }},
    Distribution{{"uniform", "q, k, v uniform on [-1, 1)"},
                 [](const Problem& p, std::uint64_t seed) {
                   return independent_inputs(p, seed, draw_symmetric);
                 }},
    Distribution{
        {"outliers", "N(0,1) + N(0,100) in 0.1% of entries (sigma 10), as FlashAttention-3"},
        [](const Problem& p, std::uint64_t seed) {
          return independent_inputs(p, seed, draw_with_outliers);
        }},
    Distribution{
        {"constant", "q, k, v all one"},
        [](const Problem& p, std::uint64_t seed) { return independent_inputs(p, seed, draw_one); }},
    Distribution{{"huge-key-first", "the first key's logits exceed all others by about 1000"},
                 [](const Problem& p, std::uint64_t seed) {
                   return raised_keys(p, seed, "huge-key-first", kHugeLogit, is_first);
                 }},
    Distribution{{"huge-key-last", "the last key's logits exceed all others by about 1000"},
                 [](const Problem& p, std::uint64_t seed) {
                   return raised_keys(p, seed, "huge-key-last", kHugeLogit, is_last);
                 }},
    Distribution{
        {"increasing-scores", "logits rise by 16 from first to last key: each a new maximum"},
        [](const Problem& p, std::uint64_t seed) {
          return ramp(p, seed, "increasing-scores", true);
        }},
    Distribution{{"decreasing-scores", "logits fall by 16: the first key's remains the maximum"},
                 [](const Problem& p, std::uint64_t seed) {
                   return ramp(p, seed, "decreasing-scores", false);
                 }},
    Distribution{{"attention-sink", "the first 4 keys' logits are about 8 above the others'"},
                 [](const Problem& p, std::uint64_t seed) {
                   return raised_keys(p, seed, "attention-sink", kSinkLogit, is_sink);
                 }},
    Distribution{{"equal-keys", "all keys of a head are equal: weights are uniform"},
                 [](const Problem& p, std::uint64_t seed) { return equal_keys(p, seed); }},
};

constexpr auto kFacts = [] {
  std::array<DistributionFacts, kDistributions.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kDistributions[i].facts;
  return all;
}();

}  // namespace

std::span<const DistributionFacts> distributions() { return kFacts; }

OwnedInputs distribution_inputs(std::string_view name, const Problem& problem, std::uint64_t seed) {
  std::string names;
  for (const Distribution& entry : kDistributions) {
    if (entry.facts.name == name) return entry.build(problem, seed);
    names += (names.empty() ? "" : ", ") + std::string(entry.facts.name);
  }
  reject("distribution", std::string(name), "one of " + names);
}

void round_to(OwnedInputs& inputs, const FloatFormat& format) {
  for (Tensor<double>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (double& value : tensor->elements) value = round_to(format, value);
  }
}

}  // namespace flashbound
