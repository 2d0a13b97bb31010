// Laws of runs under recipes: carriers, blocks, seeds, and variants that are equal in exact
// arithmetic.
#include "core/carriers.hpp"
#include "core/emulated_arithmetic.hpp"
#include "core/numeric.hpp"
#include "core/programs.hpp"
#include "experiments/random_inputs.hpp"
#include "tests/core/one_head.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 60;
using Doubles = numeric::Matrix<double>;

// flash2 on all of Q by the operations of one carrier. O, lse.
template <class T>
Doubles by_hand(const Recipe& recipe, const Doubles& q, const Doubles& k, const Doubles& v) {
  using Matrix = numeric::Matrix<T>;
  EmulatedArithmetic<T> arithmetic(recipe, 0);
  const Schedule schedule{{q.rows(), k.rows(), q.cols(), v.cols()}, {}, {q.rows(), 4}};
  Matrix a = arithmetic.inputs(q);
  Matrix o = Matrix::Zero(q.rows(), v.cols());
  Matrix row_max = Matrix::Constant(q.rows(), 1, -std::numeric_limits<T>::infinity());
  Matrix row_sum = Matrix::Zero(q.rows(), 1);
  Matrix factor = row_sum;
  const numeric::ScoreModifiers<T> modifiers{arithmetic.constant(0.37), arithmetic.constant(9),
                                             arithmetic.constant(0.125)};
  for (Index first = 0; first < k.rows(); first += 4) {
    const Index n = std::min<Index>(4, k.rows() - first);
    Matrix b = arithmetic.inputs(k.middleRows(first, n));
    Matrix c = arithmetic.inputs(v.middleRows(first, n));
    Matrix s = Matrix::Zero(q.rows(), n);
    arithmetic.multiply_transposed({s, TileRole::score}, {a}, {b});
    arithmetic.logits(s, modifiers, schedule, {{0, q.rows()}, {first, first + n}});
    arithmetic.row_max_update(row_max, s, &factor);
    arithmetic.exponentiate({s, TileRole::score}, row_max);
    arithmetic.rescale({row_sum, TileRole::statistic}, factor);
    arithmetic.row_sum_update(row_sum, s);
    arithmetic.rescale({o, TileRole::accumulator}, factor);
    arithmetic.multiply({o, TileRole::accumulator}, {s, TileRole::score}, {c});
  }
  arithmetic.divide({o, TileRole::accumulator}, row_sum);
  Matrix lse = row_sum;
  arithmetic.lse(lse, row_max, row_sum, SumOf::weights);
  Doubles result(q.rows(), v.cols() + 1);
  result << arithmetic.stored(o, Width::data).template cast<double>(), lse.template cast<double>();
  return result;
}

Doubles random_matrix(std::mt19937_64& engine, Index rows, Index cols, double size) {
  Doubles m(rows, cols);
  for (double& x : m.reshaped()) x = size * normal(engine);
  return m;
}

struct Part {
  testing::RandomCase random;
  OwnedInputs inputs;
};

Part part_of(std::uint64_t seed) {
  Part part{testing::random_case(seed), {}};
  part.inputs = normal_inputs(part.random.problem, seed);
  return part;
}

NumericRun run(const Recipe& recipe, const Part& part, const Tile& tile, Index head,
               std::uint64_t seed = 0) {
  return run_numeric(flash2_program(), part.random.problem, tile, part.inputs.view(),
                     sequence(part.random.problem, 0), head, recipe, seed);
}

bool same(const NumericRun& a, const NumericRun& b) {
  const auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  for (const char* name : {"o", "lse"}) {
    const std::vector<double>& x = a.find(name)->values;
    const std::vector<double>& y = b.find(name)->values;
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end(), equal)) return false;
  }
  return true;
}

Recipe stochastic(const char* base) {
  Recipe recipe = recipe_named(base);
  recipe.rounding = Rounding::stochastic;
  return recipe;
}

Recipe fp64_variant(void (*change)(Recipe&)) {
  Recipe recipe = uniform_recipe("variant", float_format(NumberFormat::fp64));
  change(recipe);
  return recipe;
}

}  // namespace

TEST_SUITE("cross.recipe_laws") {
  TEST_CASE("float and double carry a recipe to the same bits") {
    std::mt19937_64 engine(1);
    for (const char* name : {"all-bf16", "all-fp16", "all-fp8e4m3", "all-fp32", "flash2-bf16",
                             "flash3-fp16", "flash4-bf16", "pytorch-fp16"}) {
      Recipe recipe = recipe_named(name);
      CAPTURE(std::string(name));
      REQUIRE(float_carries(recipe));
      for (int variant = 0; variant < 3; ++variant) {
        if (variant == 1) recipe.rescale = {RescaleRule::beyond_threshold, 0.7};
        if (variant == 2) recipe.shift = Shift::avoid_one;
        for (const double size : {1e-3, 1.0, 30.0}) {
          const Doubles q = random_matrix(engine, 9, 6, size);
          const Doubles k = random_matrix(engine, 11, 6, size);
          const Doubles v = random_matrix(engine, 11, 5, size * size * size);
          const Doubles one = by_hand<float>(recipe, q, k, v);
          const Doubles two = by_hand<double>(recipe, q, k, v);
          const auto equal =
              one.array() == two.array() || (one.array().isNaN() && two.array().isNaN());
          CHECK(equal.all());
        }
      }
    }
  }

  TEST_CASE("no bit of flash2 depends on block_q or on the heads run before") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const Part part = part_of(seed);
      CAPTURE(testing::describe(part.random));
      const Index last = part.random.problem.num_heads_q - 1;
      for (const char* name : {"all-bf16", "flash2-fp16", "flash3-fp16", "all-m10"}) {
        const Recipe recipe = recipe_named(name);
        CAPTURE(recipe.name);
        const NumericRun before = run(recipe, part, part.random.tile, 0);
        for (const Index block_q : {1, 4, 50}) {
          Tile tile = part.random.tile;
          tile.block_q = block_q;
          CHECK(same(run(recipe, part, tile, 0), before));
        }
        static_cast<void>(run(recipe, part, part.random.tile, last));
        CHECK(same(run(recipe, part, part.random.tile, 0), before));
      }
    }
  }

  TEST_CASE("stochastic rounding is a function of its seed") {
    int different = 0;
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const Part part = part_of(seed);
      const Recipe recipe = stochastic("all-bf16");
      const Tile& tile = part.random.tile;
      const NumericRun once = run(recipe, part, tile, 0, 5);
      CHECK(same(run(recipe, part, tile, 0, 5), once));
      different += same(run(recipe, part, tile, 0, 6), once) ? 0 : 1;
    }
    CHECK(different > static_cast<int>(kCases) / 2);
  }

  TEST_CASE("the mean over seeds is unbiased where the run is linear") {
    // q = 0: eight weights of exactly 1, so that O is the mean of rounded values. Of 17 roundings
    // (inputs, partial sums, the quotient) each has mean 0 given those before and moves O by less
    // than c = ulp(4) / 8, |sums| < 8: a standard deviation below sqrt(17) c / 2.
    Problem p = testing::one_head({1, 8, 2, 3});
    OwnedInputs inputs = normal_inputs(p, 3);
    std::mt19937_64 engine(4);
    for (double& x : inputs.q.elements) x = 0;
    for (double& x : inputs.v.elements) x = uniform(engine) * 2 - 1;
    constexpr int kSeeds = 4000;
    const Recipe recipe = stochastic("all-bf16");
    for (Index c = 0; c < 3; ++c) {
      double exact = 0;
      for (Index j = 0; j < 8; ++j) exact += inputs.v.view()(0, 0, j, c) / 8;
      double mean = 0;
      for (int seed = 0; seed < kSeeds; ++seed) {
        const NumericRun got =
            run_numeric(flash2_program(), p, {1, 3}, inputs.view(), sequence(p, 0), 0, recipe,
                        static_cast<std::uint64_t>(seed) * 977);
        mean += (*got.find("o"))(0, c) / kSeeds;
      }
      const double step = ulp(recipe.inputs, 4) / 8;
      CHECK(std::abs(mean - exact) <= 5 * std::sqrt(17.0) * step / 2 / std::sqrt(double{kSeeds}));
      CHECK(step > 0);
    }
  }

  TEST_CASE("a threshold beyond any rise keeps the first maximum") {
    const Recipe recipe = fp64_variant([](Recipe& r) {
      r.rescale = {RescaleRule::beyond_threshold, 500};
    });
    const Recipe plain = fp64_variant([](Recipe&) {});
    Index skipped = 0;
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const Part part = part_of(seed);
      const NumericRun kept = run(recipe, part, part.random.tile, 0);
      const NumericRun followed = run(plain, part, part.random.tile, 0);
      CHECK(kept.rescales.done == 0);
      CHECK(kept.rescales.skipped == followed.rescales.done + followed.rescales.skipped);
      skipped += followed.rescales.done;
    }
    CHECK(skipped > 0);  // there was something to skip
  }

  TEST_CASE("variants that are equal in exact arithmetic agree within rounding") {
    // The maximum subtracted, the offset and the base cancel. Each weight errs by (|s| + |m| + 4) u
    // at most, twice avoid_one's m = 7 s, and each sum by u a term: 60 logits of size 100 at most.
    const Recipe plain = fp64_variant([](Recipe&) {});
    const std::vector<Recipe> variants{
        fp64_variant([](Recipe& r) {
          r.rescale = {RescaleRule::beyond_threshold, 3};
        }),
        fp64_variant([](Recipe& r) {
          r.rescale = {RescaleRule::beyond_threshold, 300};
        }),
        fp64_variant([](Recipe& r) { r.weight_offset_log2 = 8; }),
        fp64_variant([](Recipe& r) { r.shift = Shift::avoid_one; }),
        fp64_variant([](Recipe& r) { r.exponential.kind = ExponentialKind::hardware; }),
        fp64_variant([](Recipe& r) { r.scores_product.order = SumOrder::pairwise; }),
        fp64_variant([](Recipe& r) { r.values_product.product.reset(); }),
    };
    const double allowed = 60 * 20 * 100 * 0x1p-53 * 8;
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const Part part = part_of(seed);
      CAPTURE(testing::describe(part.random));
      const NumericRun expected = run(plain, part, part.random.tile, 0);
      for (std::size_t at = 0; at < variants.size(); ++at) {
        CAPTURE(at);
        const NumericRun got = run(variants[at], part, part.random.tile, 0);
        double worst = 0;
        for (const char* name : {"o", "lse"}) {
          const std::vector<double>& x = got.find(name)->values;
          const std::vector<double>& y = expected.find(name)->values;
          for (std::size_t i = 0; i < x.size(); ++i) {
            if (x[i] != y[i]) worst = std::max(worst, std::abs(x[i] - y[i]));
          }
        }
        CHECK(worst <= allowed);
      }
    }
  }

  TEST_CASE("a NaN value changes no bit of rows that do not see it") {
    for (const char* name : {"all-fp16", "flash3-fp16"}) {
      Recipe recipe = recipe_named(name);
      if (recipe.name == "all-fp16") recipe.values_product.order = SumOrder::pairwise;
      Problem p = testing::one_head({9, 9, 4, 3});
      p.window_right = 0;
      Part part{{p, {4, 4}}, normal_inputs(p, 8)};
      const NumericRun clean = run(recipe, part, {4, 4}, 0);
      part.inputs.v.view()(0, 0, 6, 1) = std::numeric_limits<double>::quiet_NaN();
      const NumericRun poisoned = run(recipe, part, {4, 4}, 0);
      for (Index row = 0; row < 9; ++row) {
        for (Index c = 0; c < 3; ++c) {
          const double x = (*poisoned.find("o"))(row, c);
          if (row >= 6 && c == 1) CHECK(std::isnan(x));
          if (row < 6 || c != 1) CHECK(x == (*clean.find("o"))(row, c));
        }
      }
    }
  }
}

}  // namespace flashbound
