// Programs are data: written to JSON and read back they are the same program, and what makes no
// sense is rejected by name.
#include "core/errors.hpp"
#include "core/program_builder.hpp"
#include "core/program_shapes.hpp"
#include "core/programs.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace flashbound {
namespace {

std::string rejection(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A program with one kernel over query blocks, whose body the caller writes.
std::string rejection_of(
    const std::function<void(ProgramBuilder&, TensorRef q, TensorRef o, LoopIndex i)>& body) {
  return rejection([&] {
    ProgramBuilder p("trial");
    const TensorRef q = p.q();
    const TensorRef o =
        p.tensor({.name = "o", .role = TensorRole::output, .axes = {Axis::query, Axis::head_dim}});
    p.kernel("only", [&] {
      p.loop("i", {RangeKind::all_q_blocks}, [&](LoopIndex i) { body(p, q, o, i); });
    });
    p.build();
  });
}

constexpr Extent kHeadDim{Axis::head_dim, kNone};

}  // namespace

TEST_SUITE("cross.program") {
  TEST_CASE("every algorithm reads back from its JSON equal") {
    for (const Algorithm& algorithm : algorithms()) {
      CAPTURE(std::string(algorithm.name));
      const Program program = algorithm.program();
      CHECK(program.name == algorithm.name);
      const std::string json = to_json(program);
      CHECK(program_from_json(json) == program);
      CHECK(to_json(program_from_json(json)) == json);
    }
  }

  TEST_CASE("a copy of a tensor is a program") {
    CHECK(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
            p.store(o, {i, kHeadDim}, p.load(q, {i, kHeadDim}));
          }) == "accepted");
  }

  TEST_CASE("an output that is never stored is named") {
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef, LoopIndex i) {
                     p.load(q, {i, kHeadDim});
                   }),
                   "never stores output 'o'"));
  }

  TEST_CASE("a released tile cannot be used") {
    CHECK(
        contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
                   const TileRef tile = p.load(q, {i, kHeadDim});
                   p.release(tile);
                   p.store(o, {i, kHeadDim}, tile);
                 }),
                 "kernel 'only', statement 1 (loop), statement 3 (store): tile 'q' is undefined"));
  }

  TEST_CASE("a tile does not outlive its scope") {
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
                     TileRef inner;
                     p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex) {
                       inner = p.load(q, {i, kHeadDim});
                     });
                     p.store(o, {i, kHeadDim}, inner);
                   }),
                   "tile 'q' is undefined or released"));
  }

  TEST_CASE("a tile of an outer scope cannot be released in a loop") {
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
                     const TileRef tile = p.load(q, {i, kHeadDim});
                     p.store(o, {i, kHeadDim}, tile);
                     p.loop("j", {RangeKind::all_kv_blocks}, [&](LoopIndex) { p.release(tile); });
                   }),
                   "belongs to an outer scope"));
  }

  TEST_CASE("shapes that do not fit are rejected") {
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
                     const TileRef tile = p.load(q, {i, kHeadDim});
                     p.multiply(tile, tile, tile);
                     p.store(o, {i, kHeadDim}, tile);
                   }),
                   "(multiply): the shape of tile 'q' does not fit"));
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
                     p.store(o, {i, whole(Axis::head_dim_v)}, p.load(q, {i, kHeadDim}));
                   }),
                   "does not fit the axes of tensor 'o'"));
  }

  TEST_CASE("operands of a backward pass that do not fit are rejected") {
    const TileDecl scores{"scores", TileRole::score, {Axis::query, 0}, {Axis::key, 1}};
    const TileDecl q{"q", TileRole::operand, {Axis::query, 0}, kHeadDim};
    const TileDecl k{"k", TileRole::operand, {Axis::key, 1}, kHeadDim};
    const TileDecl delta{"delta", TileRole::statistic, {Axis::query, 0}, kColumn};
    CHECK(misfit(Op::multiply_left_transposed, k, &scores, &q).empty());
    CHECK(contains(misfit(Op::multiply_left_transposed, q, &scores, &q), "tile 'q' does not fit"));
    CHECK(misfit(Op::row_dot, delta, &q, &q).empty());
    CHECK(contains(misfit(Op::row_dot, delta, &q, &k), "tile 'k' does not fit"));
    CHECK(misfit(Op::softmax_gradient, scores, &scores, &delta).empty());
    CHECK(contains(misfit(Op::softmax_gradient, q, &q, &delta), "'q' is not a tile of scores"));
    CHECK(misfit(Op::logits_gradient, scores, nullptr, nullptr).empty());
    CHECK(misfit(Op::logits_gradient, scores, &q, &k).empty());
    CHECK(contains(misfit(Op::logits_gradient, scores, &k, &q), "does not fit"));
    CHECK(contains(misfit(Op::logits_gradient, scores, &q, nullptr), "only one of the operands"));
  }

  TEST_CASE("inputs are not written and outputs not read before they are") {
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef, LoopIndex i) {
                     p.store(q, {i, kHeadDim}, p.load(q, {i, kHeadDim}));
                   }),
                   "stores into input 'q'"));
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef, TensorRef o, LoopIndex i) {
                     p.store(o, {i, kHeadDim}, p.load(o, {i, kHeadDim}));
                   }),
                   "loads 'o', which nothing has stored"));
  }

  TEST_CASE("a range seen from a loop that is not running is rejected") {
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
                     p.loop("j", {RangeKind::visible_q_blocks, i.loop}, [&](LoopIndex) {});
                     p.store(o, {i, kHeadDim}, p.load(q, {i, kHeadDim}));
                   }),
                   "seen from a wrong axis"));
    CHECK(contains(rejection_of([](ProgramBuilder& p, TensorRef q, TensorRef o, LoopIndex i) {
                     LoopIndex gone;
                     p.loop("t", {RangeKind::all_q_blocks}, [&](LoopIndex t) { gone = t; });
                     p.loop("j", {RangeKind::visible_kv_blocks, gone.loop}, [&](LoopIndex) {});
                     p.store(o, {i, kHeadDim}, p.load(q, {i, kHeadDim}));
                   }),
                   "is out of scope"));
  }

  TEST_CASE("text that is no program is rejected in one line") {
    const std::string good = to_json(flash2_program());
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("[]"), std::string("{\"program\": 3}"),
          good.substr(0, good.size() / 2)}) {
      const std::string message = rejection([&] { program_from_json(text); });
      CHECK(message != "accepted");
    }
    std::string misspelt = good;
    misspelt.replace(misspelt.find("\"divide\""), 8, "\"dibide\"");
    CHECK(contains(rejection([&] { program_from_json(misspelt); }), "unknown word 'dibide'"));
    std::string nested = "{\"op\":\"loop\",\"loop\":0,\"body\":[]}";
    for (int depth = 0; depth < 100; ++depth) {
      nested = "{\"op\":\"loop\",\"loop\":0,\"body\":[" + nested + "]}";
    }
    const std::string deep =
        R"({"program":"deep","tensors":[],"tiles":[],"loops":[],"body":[)" + nested + "]}";
    CHECK(contains(rejection([&] { program_from_json(deep); }), "program nesting"));
  }

  TEST_CASE("numbers that are no whole index are rejected and not narrowed") {
    const std::string good = to_json(flash2_program());
    const std::string wanted = "\"tile\": 1";
    REQUIRE(contains(good, wanted));
    for (const char* value : {"4294967297", "1.0", "1e+300", "-1", "\"1\"", "null", "true",
                              "18446744073709551615", "2147483648"}) {
      CAPTURE(value);
      std::string bad = good;
      bad.replace(bad.find(wanted), wanted.size(), std::string("\"tile\": ") + value);
      CHECK(rejection([&] { program_from_json(bad); }) ==
            "program tile = " + std::string(value) + ": must be a whole number from 0");
    }
  }

  TEST_CASE("an unknown algorithm is answered with the names that exist") {
    const std::string message = rejection([] { algorithm_named("flash9"); });
    CHECK(contains(message, "algorithm = flash9"));
    CHECK(contains(message, "flash2"));
  }
}

}  // namespace flashbound
