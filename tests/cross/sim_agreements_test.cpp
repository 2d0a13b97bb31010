// The trace machine moves what the closed forms and the count machine say, per tensor, reads and
// writes apart: an ideal scratchpad, at whose boundary every tile move crosses. And its addresses
// lie where a layout may put them.
#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/programs.hpp"
#include "sim/trace.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 1200;
constexpr NumberFormat kDtypes[] = {NumberFormat::fp16, NumberFormat::fp32, NumberFormat::fp64,
                                    NumberFormat::fp8e4m3};
constexpr LayoutKind kKinds[] = {LayoutKind::contiguous, LayoutKind::strided, LayoutKind::padded};

NumberFormat dtype_of(std::uint64_t seed) { return kDtypes[seed % 4]; }
// Lines from one byte, less than an element, to 64.
Index line_of(std::uint64_t seed) { return Index{1} << (seed / 12 % 7); }

struct Case {
  const testing::RandomCase& random;
  const Algorithm& algorithm;
  Program program;
  NumberFormat dtype;
  Layout where;
};

// Calls check(case) for every algorithm on every random problem, which `change` may alter first.
void for_each_case(const std::function<void(testing::RandomCase&)>& change, std::uint64_t cases,
                   const std::function<void(const Case&)>& check) {
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    testing::RandomCase random = testing::random_case(seed);
    change(random);
    for (const Algorithm& algorithm : algorithms()) {
      const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
      CAPTURE(seed);
      CAPTURE(what);
      const Program program = algorithm.program();
      check({random, algorithm, program, dtype_of(seed),
             layout(program, random.problem, random.tile, dtype_of(seed), kKinds[seed / 4 % 3],
                    line_of(seed))});
    }
  }
}

void unchanged(testing::RandomCase&) {}

void trace(const Case& c, Granularity granularity, const RunSink& sink) {
  flashbound::trace(c.program, c.random.problem, c.random.tile, c.where, granularity, sink);
}

struct Moved {
  Int128 read = 0;
  Int128 written = 0;
};

// By tensor: the bytes of all runs.
std::vector<Moved> moved_bytes(const Case& c, Granularity granularity) {
  std::vector<Moved> moved(c.program.tensors.size());
  trace(c, granularity, [&](const AccessRun& run) {
    Moved& m = moved[static_cast<std::size_t>(run.tensor)];
    (run.write ? m.written : m.read) += run.units * run.unit_bytes;
  });
  return moved;
}

// The lines that runs meet in turn, without consecutive repeats.
std::vector<Index> lines_in_turn(const Case& c, Granularity granularity) {
  std::vector<Index> lines;
  const Index line = c.where.line_bytes;
  trace(c, granularity, [&](const AccessRun& run) {
    for (Index unit = 0; unit < run.units; ++unit) {
      const Index begin = run.address + unit * run.unit_bytes;
      for (Index n = begin / line; n <= (begin + run.unit_bytes - 1) / line; ++n) {
        if (lines.empty() || lines.back() != n) lines.push_back(n);
      }
    }
  });
  return lines;
}

// Whether all that a program moves of a tensor is whole rows of whole lines.
bool rows_are_lines(const Case& c, std::size_t t) {
  const TensorDecl& tensor = c.program.tensors[t];
  const Axis cols = tensor.axes.back();
  const Index dim = cols == Axis::head_dim     ? c.random.problem.head_dim
                    : cols == Axis::head_dim_v ? c.random.problem.head_dim_v
                                               : 0;
  return dim > 0 && !c.algorithm.name.starts_with("small-cache") &&
         dim * c.where.tensors[t].element_bytes % c.where.line_bytes == 0;
}

}  // namespace

TEST_SUITE("cross.sim") {
  TEST_CASE("elements traced = closed form = count machine for every algorithm") {
    for_each_case(unchanged, kCases, [](const Case& c) {
      const IoCount formula =
          closed_form(c.algorithm.name, c.random.problem, c.random.tile, c.dtype);
      const IoCount counted = count(c.program, c.random.problem, c.random.tile, c.dtype);
      const std::vector<Moved> moved = moved_bytes(c, Granularity::element);
      REQUIRE(formula.tensors.size() == moved.size());
      for (std::size_t t = 0; t < moved.size(); ++t) {
        CAPTURE(formula.tensors[t].tensor);
        CHECK(Bytes(moved[t].read) == formula.tensors[t].read_bytes());
        CHECK(Bytes(moved[t].written) == formula.tensors[t].write_bytes());
        CHECK(Bytes(moved[t].read) == counted.tensors[t].read_bytes());
        CHECK(Bytes(moved[t].written) == counted.tensors[t].write_bytes());
      }
    });
  }

  TEST_CASE("tiles hold the bytes of their elements") {
    for_each_case(unchanged, kCases, [](const Case& c) {
      const std::vector<Moved> elements = moved_bytes(c, Granularity::element);
      const std::vector<Moved> tiles = moved_bytes(c, Granularity::tile);
      for (std::size_t t = 0; t < tiles.size(); ++t) {
        CHECK(tiles[t].read == elements[t].read);
        CHECK(tiles[t].written == elements[t].written);
      }
    });
  }

  TEST_CASE("lines traced = closed form where rows are whole lines and no less elsewhere") {
    Index aligned = 0;
    const auto widen = [](testing::RandomCase& random) {
      random.problem.head_dim *= 8;
      random.problem.head_dim_v *= 8;
    };
    for_each_case(widen, kCases, [&](const Case& c) {
      const IoCount formula =
          closed_form(c.algorithm.name, c.random.problem, c.random.tile, c.dtype);
      const std::vector<Moved> moved = moved_bytes(c, Granularity::line);
      for (std::size_t t = 0; t < moved.size(); ++t) {
        CAPTURE(formula.tensors[t].tensor);
        CHECK(Bytes(moved[t].read) >= formula.tensors[t].read_bytes());
        CHECK(Bytes(moved[t].written) >= formula.tensors[t].write_bytes());
        if (!rows_are_lines(c, t)) continue;
        ++aligned;
        CHECK(Bytes(moved[t].read) == formula.tensors[t].read_bytes());
        CHECK(Bytes(moved[t].written) == formula.tensors[t].write_bytes());
      }
    });
    CHECK(aligned > 10000);
  }

  TEST_CASE("element order and line order meet the same lines in the same turn") {
    for_each_case(unchanged, kCases, [](const Case& c) {
      CHECK(lines_in_turn(c, Granularity::element) == lines_in_turn(c, Granularity::line));
    });
  }

  TEST_CASE("every access lies within its tensor and tensors share no line") {
    for_each_case(unchanged, kCases, [](const Case& c) {
      for (std::size_t t = 0; t < c.where.tensors.size(); ++t) {
        const TensorLayout& tensor = c.where.tensors[t];
        CHECK(tensor.begin % c.where.line_bytes == 0);
        CHECK(tensor.begin <= tensor.end);
        const Index next =
            t + 1 < c.where.tensors.size() ? c.where.tensors[t + 1].begin : c.where.bytes;
        CHECK(tensor.end <= next);
      }
      bool inside = true;
      trace(c, Granularity::element, [&](const AccessRun& run) {
        const TensorLayout& tensor = c.where.tensors[static_cast<std::size_t>(run.tensor)];
        inside = inside && run.units > 0 && run.unit_bytes == tensor.element_bytes &&
                 run.address >= tensor.begin &&
                 run.address + run.units * run.unit_bytes <= tensor.end;
      });
      CHECK(inside);
    });
  }

  TEST_CASE("heads share no byte but the keys and values of their group") {
    for_each_case(unchanged, kCases / 4, [](const Case& c) {
      const Index ratio = q_heads_per_kv_head(c.random.problem);
      // By tensor: which head each byte belongs to, counted by matrices.
      std::vector<std::vector<Index>> owner;
      for (const TensorLayout& tensor : c.where.tensors) {
        owner.emplace_back(static_cast<std::size_t>(tensor.end - tensor.begin), -1);
      }
      bool apart = true;
      for (Index s = 0; s < sequence_count(c.random.problem); ++s) {
        for (Index head = 0; head < c.random.problem.num_heads_q; ++head) {
          const auto claim = [&](const AccessRun& run) {
            const auto t = static_cast<std::size_t>(run.tensor);
            const std::string& name = c.program.tensors[t].name;
            const Index kv_head = (name == "k" || name == "v") ? head / ratio : head;
            const Index mine = s * c.random.problem.num_heads_q + kv_head;
            for (Index byte = 0; byte < run.units * run.unit_bytes; ++byte) {
              Index& its =
                  owner[t][static_cast<std::size_t>(run.address - c.where.tensors[t].begin + byte)];
              apart = apart && (its == -1 || its == mine);
              its = mine;
            }
          };
          trace_head(c.program, c.random.problem, c.random.tile, c.where, s, head,
                     Granularity::element, claim);
        }
      }
      CHECK(apart);
    });
  }
}

}  // namespace flashbound
