// What validate() accepts and rejects, each limit from both sides; sequences and ALiBi slopes.
#include "core/problem.hpp"

#include "core/errors.hpp"
#include "tests/core/one_head.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

TEST_SUITE_BEGIN("core.problem");

namespace flashbound {
namespace {

using testing::one_head;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The error's text, or "" when accepted.
std::string verdict(const Problem& problem, Emptiness emptiness = Emptiness::rejected) {
  try {
    validate(problem, emptiness);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Problem changed(const std::function<void(Problem&)>& change) {
  Problem problem = one_head({6, 8, 4, 4});
  change(problem);
  return problem;
}

struct Limit {
  Index Problem::*field;
  std::string name;
  Index low, high;
};

TEST_CASE("each size is accepted at both limits and rejected beyond them by name") {
  const std::vector<Limit> limits{
      {&Problem::batch, "batch", 1, Index{1} << 24},
      {&Problem::num_heads_q, "num_heads_q", 1, Index{1} << 16},
      {&Problem::seqlen_q, "seqlen_q", 1, Index{1} << 32},
      {&Problem::seqlen_kv, "seqlen_kv", 1, Index{1} << 32},
      {&Problem::head_dim, "head_dim", 1, 576},
      {&Problem::head_dim_v, "head_dim_v", 1, 576},
      {&Problem::window_left, "window_left", -1, Index{1} << 32},
      {&Problem::window_right, "window_right", -1, Index{1} << 32},
  };
  for (const Limit& limit : limits) {
    CAPTURE(limit.name);
    for (const Index inside : {limit.low, limit.high}) {
      CHECK(verdict(changed([&](Problem& p) { p.*limit.field = inside; })) == "");
    }
    for (const Index outside : {limit.low - 1, limit.high + 1}) {
      const std::string text = verdict(changed([&](Problem& p) { p.*limit.field = outside; }));
      CHECK(text.starts_with(limit.name + " = " + std::to_string(outside) + ": must be "));
    }
  }
  CHECK(verdict(changed([](Problem& p) { p.num_heads_kv = 0; })).starts_with("num_heads_kv = 0"));
  CHECK(verdict(changed([](Problem& p) { p.num_heads_kv = -2; })).starts_with("num_heads_kv = -2"));
}

TEST_CASE("query heads are a multiple of key heads or the problem is rejected") {
  for (Index heads_q = 1; heads_q <= 12; ++heads_q) {
    for (Index heads_kv = 1; heads_kv <= 12; ++heads_kv) {
      const std::string text = verdict(changed([&](Problem& p) {
        p.num_heads_q = heads_q;
        p.num_heads_kv = heads_kv;
      }));
      CAPTURE(heads_q);
      CAPTURE(heads_kv);
      CHECK((text == "") == (heads_q % heads_kv == 0));
      if (text != "") CHECK(text.starts_with("num_heads_q = "));
    }
  }
}

TEST_CASE("lengths and batch of zero are for computing and not for counting") {
  for (Index Problem::*field : {&Problem::batch, &Problem::seqlen_q, &Problem::seqlen_kv}) {
    const Problem empty = changed([&](Problem& p) { p.*field = 0; });
    CHECK(verdict(empty) != "");
    CHECK(verdict(empty, Emptiness::allowed) == "");
    const Problem negative = changed([&](Problem& p) { p.*field = -1; });
    CHECK(verdict(negative, Emptiness::allowed) != "");
  }
  for (Index Problem::*field : {&Problem::head_dim, &Problem::num_heads_q}) {
    CHECK(verdict(changed([&](Problem& p) { p.*field = 0; }), Emptiness::allowed) != "");
  }
}

TEST_CASE("score modifiers are finite and the softcap is not negative") {
  for (const double scale : {0.0, -2.5, 1e-300, 1e300}) {
    CAPTURE(scale);
    CHECK(verdict(changed([&](Problem& p) { p.softmax_scale = scale; })) == "");
  }
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    CAPTURE(bad);
    const auto text = [&](const std::function<void(Problem&)>& change) {
      return verdict(changed(change));
    };
    CHECK(text([&](Problem& p) { p.softmax_scale = bad; }).starts_with("softmax_scale = "));
    CHECK(text([&](Problem& p) { p.softcap = bad; }).starts_with("softcap = "));
    CHECK(text([&](Problem& p) { p.alibi_slopes = {bad}; }).starts_with("alibi_slopes = "));
    CHECK(text([&](Problem& p) { p.sink = {bad}; }).starts_with("sink = "));
  }
  CHECK(verdict(changed([](Problem& p) { p.softcap = 15; })) == "");
  CHECK(verdict(changed([](Problem& p) { p.softcap = -1e-9; })).starts_with("softcap = "));
}

TEST_CASE("slopes and sinks come one a query head") {
  for (std::size_t count = 0; count <= 5; ++count) {
    const bool right = count == 0 || count == 4;
    const std::vector<double> values(count, 0.5);
    CAPTURE(count);
    CHECK((verdict(changed([&](Problem& p) {
             p.num_heads_q = 4;
             p.alibi_slopes = values;
           })) == "") == right);
    CHECK((verdict(changed([&](Problem& p) {
             p.num_heads_q = 4;
             p.sink = values;
           })) == "") == right);
  }
}

TEST_CASE("packed lengths start at 0 and never fall and end at the length") {
  const auto text = [](const std::vector<Index>& cu_q, const std::vector<Index>& cu_kv) {
    return verdict(changed([&](Problem& p) {
      p.cu_seqlens_q = cu_q;
      p.cu_seqlens_kv = cu_kv;
    }));
  };
  CHECK(text({0, 6}, {0, 8}) == "");
  CHECK(text({0, 0, 6, 6}, {0, 3, 3, 8}) == "");
  CHECK(text({1, 6}, {0, 8}).starts_with("cu_seqlens_q = first entry 1"));
  CHECK(text({0, 6}, {0, 9, 8}).starts_with("cu_seqlens_kv = 3 entries"));
  CHECK(text({0, 3, 6}, {0, 9, 8}).starts_with("cu_seqlens_kv = entry 2 = 8"));
  CHECK(text({0, 5}, {0, 8}).starts_with("cu_seqlens_q = last entry 5"));
  CHECK(text({0, 6}, {0, 7}).starts_with("cu_seqlens_kv = last entry 7"));
  CHECK(text({0, 6}, {}).starts_with("cu_seqlens_kv = 0 entries"));
  CHECK(text({}, {0, 8}).starts_with("cu_seqlens_kv = 2 entries"));
  CHECK(verdict(changed([](Problem& p) {
          p.batch = 2;
          p.cu_seqlens_q = {0, 6};
          p.cu_seqlens_kv = {0, 8};
        })).starts_with("batch = 2"));
}

TEST_CASE("a block mask has exactly the cells that its lengths need") {
  const auto text = [](const BlockMask& mask) {
    return verdict(changed([&](Problem& p) { p.block_mask = mask; }));
  };
  const std::vector<std::uint8_t> six(6, 1);
  CHECK(text({4, 3, 2, 3, six}) == "");
  CHECK(text({4, 3, 3, 2, six}).starts_with("block_mask = 3 x 2 cells"));
  CHECK(text({4, 3, 2, 3, std::vector<std::uint8_t>(5, 1)}).starts_with("block_mask = "));
  CHECK(text({0, 3, 2, 3, six}).starts_with("block_mask.block_q = 0"));
  CHECK(text({4, 0, 2, 3, six}).starts_with("block_mask.block_kv = 0"));
  CHECK(verdict(changed([&](Problem& p) {
          p.block_mask = BlockMask{4, 3, 2, 3, six};
          p.cu_seqlens_q = {0, 6};
          p.cu_seqlens_kv = {0, 8};
        })).starts_with("block_mask = given"));
}

TEST_CASE("tiles have blocks of at least one row and panels that divide them") {
  const auto accepted = [](const Tile& tile) {
    try {
      validate(tile);
    } catch (const ConfigError&) {
      return false;
    }
    return true;
  };
  CHECK(accepted({1, 1, 1, 1}));
  CHECK(accepted({64, 48, 16, 7}));
  CHECK_FALSE(accepted({0, 1, 1, 1}));
  CHECK_FALSE(accepted({1, 0, 1, 1}));
  CHECK_FALSE(accepted({1, 8, 0, 1}));
  CHECK_FALSE(accepted({1, 8, 3, 1}));
  CHECK_FALSE(accepted({1, 8, 16, 1}));
  CHECK_FALSE(accepted({1, 8, 8, 0}));
}

TEST_CASE("the default scale is one over the root of head_dim") {
  Problem p = one_head({1, 1, 64, 1});
  CHECK(softmax_scale(p) == 0.125);
  p.softmax_scale = -3;
  CHECK(softmax_scale(p) == -3);
}

TEST_CASE("sequences lie one after another in a batch or in the packing") {
  Problem batch = one_head({6, 8, 1, 1});
  batch.batch = 3;
  CHECK(sequence_count(batch) == 3);
  CHECK(sequence(batch, 2) == Sequence{2, 0, 0, 6, 8});
  Problem packed = one_head({6, 8, 1, 1});
  packed.cu_seqlens_q = {0, 0, 4, 6};
  packed.cu_seqlens_kv = {0, 1, 8, 8};
  CHECK(sequence_count(packed) == 3);
  CHECK(sequence(packed, 0) == Sequence{0, 0, 0, 0, 1});
  CHECK(sequence(packed, 1) == Sequence{0, 0, 1, 4, 7});
  CHECK(sequence(packed, 2) == Sequence{0, 4, 8, 2, 0});
}

TEST_CASE("A31: ALiBi slopes of head counts that are no power of two interleave") {
  for (const Index heads : {1, 2, 4, 8, 16, 64}) {
    const std::vector<double> slopes = alibi_slopes(heads);
    REQUIRE(static_cast<Index>(slopes.size()) == heads);
    for (Index h = 0; h < heads; ++h) {
      const double exponent = -8 * static_cast<double>(h + 1) / static_cast<double>(heads);
      CHECK(slopes[static_cast<std::size_t>(h)] == std::exp2(exponent));
    }
  }
  // 12 heads: the 8 of eight heads, then heads 1, 3, 5, 7 (from 1) of sixteen.
  const std::vector<double> exponents12{1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5};
  const std::vector<double> slopes12 = alibi_slopes(12);
  REQUIRE(slopes12.size() == 12);
  for (std::size_t h = 0; h < 12; ++h) CHECK(slopes12[h] == std::exp2(-exponents12[h]));
  // 40 heads: the 32 of thirty-two heads, then the odd ones among the first 15 of sixty-four.
  const std::vector<double> slopes40 = alibi_slopes(40);
  REQUIRE(slopes40.size() == 40);
  for (std::size_t h = 0; h < 32; ++h) {
    CHECK(slopes40[h] == std::exp2(-static_cast<double>(h + 1) / 4));
  }
  for (std::size_t k = 0; k < 8; ++k) {
    CHECK(slopes40[32 + k] == std::exp2(-static_cast<double>(2 * k + 1) / 8));
  }
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
