// Rounding, scaling and rotating of inputs.
#include "core/quantization.hpp"

#include "core/errors.hpp"
#include "experiments/random_inputs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace flashbound {
namespace {

Problem problem_of(Index heads_q, Index heads_kv, Index seqlen, Index head_dim) {
  Problem p;
  p.batch = 2;
  p.num_heads_q = heads_q;
  p.num_heads_kv = heads_kv;
  p.seqlen_q = p.seqlen_kv = seqlen;
  p.head_dim = p.head_dim_v = head_dim;
  return p;
}

Recipe scaled_recipe(const char* format, Scaling scaling) {
  Recipe recipe = recipe_named("flash2-bf16");
  recipe.name = "scaled";
  recipe.inputs = parse_float_format("format", format);
  recipe.quantization = {.scaling = scaling, .block_q = 5, .block_kv = 3};
  return recipe;
}

using Tensor4 = TensorView<const double>;

// Largest magnitude in rows [first, last) of one head.
double largest(const Tensor4& t, Index b, Index h, Index first, Index last) {
  double result = 0;
  for (Index row = first; row < last; ++row) {
    for (Index c = 0; c < t.shape[3]; ++c) result = std::max(result, std::abs(t(b, h, row, c)));
  }
  return result;
}

// Half a last place of x / s in the format, times s: s is largest / format.largest, enlarged by at
// most 2^-7. fp64's own rounding of x / s adds less than 2^-40 of it.
double allowed(const FloatFormat& format, double block_largest, double x) {
  const double least = block_largest / format.largest;
  return least * (1 + 0x1p-7) * ulp(format, x / least) / 2 * (1 + 0x1p-40);
}

void check_rows(const FloatFormat& format, const Tensor4& before, const Tensor4& after,
                Index block) {
  for (Index b = 0; b < before.shape[0]; ++b) {
    for (Index h = 0; h < before.shape[1]; ++h) {
      for (Index first = 0; first < before.shape[2]; first += block) {
        const Index last = std::min(first + block, before.shape[2]);
        const double size = largest(before, b, h, first, last);
        for (Index row = first; row < last; ++row) {
          for (Index c = 0; c < before.shape[3]; ++c) {
            const double x = before(b, h, row, c);
            const double y = after(b, h, row, c);
            CAPTURE(x);
            CAPTURE(y);
            CHECK(static_cast<double>(static_cast<float>(y)) == y);
            CHECK(std::abs(x - y) <= allowed(format, size, x));
          }
        }
      }
    }
  }
}

double dot(const Tensor4& a, Index row_a, const Tensor4& b, Index row_b) {
  double sum = 0;
  for (Index c = 0; c < a.shape[3]; ++c) sum += a(0, 0, row_a, c) * b(0, 0, row_b, c);
  return sum;
}

}  // namespace

TEST_SUITE("core.quantization") {
  TEST_CASE("without scaling inputs are rounded to the format") {
    const Problem p = problem_of(2, 1, 9, 4);
    const OwnedInputs inputs = normal_inputs(p, 1);
    for (const char* name : {"all-bf16", "all-fp8e4m3", "flash2-fp16"}) {
      const Recipe recipe = recipe_named(name);
      const OwnedInputs rounded = rounded_inputs(recipe, p, inputs.view());
      for (std::size_t at = 0; at < inputs.q.elements.size(); ++at) {
        CHECK(rounded.q.elements[at] == round_to(recipe.inputs, inputs.q.elements[at]));
      }
      CHECK(rounded_inputs(recipe, p, rounded.view()).k.elements == rounded.k.elements);
    }
  }

  TEST_CASE("scaled numbers are floats within half a place of their scaled format") {
    const Problem p = problem_of(3, 1, 13, 4);
    for (const double size : {1.0, 1e-9, 3e11}) {
      OwnedInputs inputs = normal_inputs(p, 2);
      for (Tensor<double>* t : {&inputs.q, &inputs.k, &inputs.v}) {
        for (double& x : t->elements) x *= size;
      }
      for (const char* format : {"fp8e4m3", "fp8e5m2", "fp16", "m3e3"}) {
        const Recipe recipe = scaled_recipe(format, Scaling::per_block);
        const OwnedInputs rounded = rounded_inputs(recipe, p, inputs.view());
        check_rows(recipe.inputs, inputs.view().q, rounded.view().q, 5);
        check_rows(recipe.inputs, inputs.view().k, rounded.view().k, 3);
        check_rows(recipe.inputs, inputs.view().v, rounded.view().v, 3);
      }
    }
  }

  TEST_CASE("the largest number keeps its size to the precision of scale and format") {
    const Problem p = problem_of(1, 1, 8, 4);
    const OwnedInputs inputs = normal_inputs(p, 3);
    const Recipe recipe = scaled_recipe("fp8e4m3", Scaling::per_tensor);
    const OwnedInputs rounded = rounded_inputs(recipe, p, inputs.view());
    double before = 0;
    double after = 0;
    for (const double x : inputs.q.elements) before = std::max(before, std::abs(x));
    for (const double x : rounded.q.elements) after = std::max(after, std::abs(x));
    CHECK(std::abs(after - before) <= before * 0x1p-4);
  }

  TEST_CASE("scales of a block depend on its own rows alone") {
    const Problem p = problem_of(2, 2, 10, 4);
    OwnedInputs inputs = normal_inputs(p, 4);
    const Recipe recipe = scaled_recipe("fp8e4m3", Scaling::per_block);
    const OwnedInputs before = rounded_inputs(recipe, p, inputs.view());
    inputs.q.view()(1, 0, 6, 2) = 1e6;  // of the rows 5..9 of one head
    inputs.k.view()(0, 1, 9, 0) = 1e6;  // the row 9, alone in its block
    const OwnedInputs after = rounded_inputs(recipe, p, inputs.view());
    bool block_changed = false;
    for (Index b = 0; b < 2; ++b) {
      for (Index h = 0; h < 2; ++h) {
        for (Index row = 0; row < 10; ++row) {
          for (Index c = 0; c < 4; ++c) {
            const bool q_block = b == 1 && h == 0 && row >= 5;
            const bool q_same = before.q.view()(b, h, row, c) == after.q.view()(b, h, row, c);
            block_changed = block_changed || (q_block && !q_same && row != 6);
            if (!q_block) CHECK(q_same);
            const bool k_block = b == 0 && h == 1 && row == 9;
            if (!k_block) CHECK(before.k.view()(b, h, row, c) == after.k.view()(b, h, row, c));
          }
        }
      }
    }
    CHECK(block_changed);
    CHECK(before.v.elements == after.v.elements);
  }

  TEST_CASE("NaN and infinity stay and set no scale") {
    const Problem p = problem_of(1, 1, 8, 4);
    OwnedInputs inputs = normal_inputs(p, 5);
    const Recipe recipe = scaled_recipe("fp16", Scaling::per_tensor);
    const OwnedInputs clean = rounded_inputs(recipe, p, inputs.view());
    inputs.v.elements[0] = std::numeric_limits<double>::quiet_NaN();
    inputs.v.elements[1] = -std::numeric_limits<double>::infinity();
    const OwnedInputs rounded = rounded_inputs(recipe, p, inputs.view());
    CHECK(std::isnan(rounded.v.elements[0]));
    CHECK(rounded.v.elements[1] == inputs.v.elements[1]);
    for (std::size_t at = 2; at < clean.v.elements.size(); ++at) {
      CHECK(std::abs(rounded.v.elements[at] - clean.v.elements[at]) <=
            0x1p-10 * std::abs(clean.v.elements[at]));
    }
  }

  TEST_CASE("a tensor of zeros stays zero") {
    const Problem p = problem_of(1, 1, 8, 4);
    OwnedInputs inputs = normal_inputs(p, 6);
    for (double& x : inputs.k.elements) x = 0;
    for (const Scaling scaling : {Scaling::per_tensor, Scaling::per_block}) {
      const OwnedInputs rounded =
          rounded_inputs(scaled_recipe("fp8e4m3", scaling), p, inputs.view());
      CHECK(rounded.k.elements == inputs.k.elements);
    }
  }

  TEST_CASE("rotation keeps lengths and products to rounding and leaves V") {
    Recipe recipe = uniform_recipe(NumberFormat::fp64);
    recipe.quantization.rotated = true;
    for (const Index dim : {1, 2, 8, 64}) {
      const Problem p = problem_of(1, 1, 7, dim);
      const OwnedInputs inputs = normal_inputs(p, 7);
      const OwnedInputs rotated = rounded_inputs(recipe, p, inputs.view(), 11);
      const Tensor4 q = inputs.view().q;
      const Tensor4 k = inputs.view().k;
      const OwnedInputs& r = rotated;
      CHECK(rotated.v.elements == inputs.v.elements);
      for (Index i = 0; i < 7; ++i) {
        for (Index j = 0; j < 7; ++j) {
          // log2(dim) + 2 roundings a number, dim + 1 a dot product, of sizes |q| |k|.
          const double size = std::sqrt(dot(q, i, q, i) * dot(k, j, k, j));
          const double roundings = 3 * static_cast<double>(dim) + 40;
          CHECK(std::abs(dot(r.q.view(), i, r.k.view(), j) - dot(q, i, k, j)) <=
                roundings * 0x1p-53 * size);
        }
        CHECK(std::abs(dot(r.q.view(), i, r.q.view(), i) - dot(q, i, q, i)) <=
              (3 * static_cast<double>(dim) + 40) * 0x1p-53 * dot(q, i, q, i));
      }
      if (dim >= 8) {
        CHECK(rotated.q.elements != inputs.q.elements);
        CHECK(rounded_inputs(recipe, p, inputs.view(), 12).q.elements != rotated.q.elements);
      }
      CHECK(rounded_inputs(recipe, p, inputs.view(), 11).q.elements == rotated.q.elements);
    }
  }

  TEST_CASE("rotation spreads an outlier over its row") {
    Recipe recipe = uniform_recipe(NumberFormat::fp64);
    recipe.quantization.rotated = true;
    const Problem p = problem_of(1, 1, 1, 64);
    OwnedInputs inputs = normal_inputs(p, 8);
    for (double& x : inputs.q.elements) x = 0;
    inputs.q.elements[5] = 8;
    const OwnedInputs rotated = rounded_inputs(recipe, p, inputs.view());
    for (std::size_t c = 0; c < 64; ++c) CHECK(std::abs(rotated.q.elements[c]) == 1);
  }

  TEST_CASE("a head_dim that is no power of two is refused where it is rotated") {
    Recipe recipe = recipe_named("flash3-fp8");
    for (const Index dim : {3, 6, 12}) {
      const Problem p = problem_of(1, 1, 4, dim);
      const OwnedInputs inputs = normal_inputs(p, 9);
      CHECK_THROWS_WITH_AS(rounded_inputs(recipe, p, inputs.view()),
                           doctest::Contains("a power of two"), ConfigError);
    }
    recipe.quantization.rotated = false;
    const Problem p = problem_of(1, 1, 4, 3);
    CHECK_NOTHROW(rounded_inputs(recipe, p, normal_inputs(p, 9).view()));
  }
}

}  // namespace flashbound
