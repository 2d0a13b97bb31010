// Failure cases that other attention libraries met, as data: problems, inputs and right values, for
// the reference and for every machine that runs programs. The ids are kept stable: A1 to A53 from
// public reports and our own additions, S for rows of core/README.md, semantics.
//
// Forward behaviour is what these cases are about; where a report concerns the backward pass, its
// problem is here and its forward output is checked. Sizes that did not matter are cut. Where a
// length or a batch overflowed an index it keeps its size beside a short other one (A4, A5, A6,
// A7): every index here is 64 bits wide, and products of both lengths are the counts' tests.
//
//   not here   why
//   A8         memory layout of the inputs: reference_test.cpp ("A8: strides ...")
//   A16        64-bit offsets: attention_cases_test.cpp, on sparse memory
//   A17        a cache longer than its sequence: attention_cases_test.cpp, as a strided view
//   A27        overflow of a gradient accumulator: there is no backward pass yet (A6 has the batch)
//   A28, A35   repeated runs are bit-equal: reference_test.cpp ("A28 A35: ...")
//   A42        dropout: the core has none
//   A9         its pages: the core has none; two sequences that both must be written are here
//   A7         its bias tensor: the core has none; ALiBi over 32 heads of 8192 keys is here
//   A15, A40   rejected problems: rejected_cases()
#pragma once

#include "core/error_bound.hpp"
#include "core/problem.hpp"
#include "core/recipe.hpp"
#include "core/reference.hpp"
#include "experiments/random_inputs.hpp"

#include <functional>
#include <string>
#include <vector>

namespace flashbound::testing {

inline constexpr Index kLse = -1;  // in place of a column

// A right value known without computing attention. NaN: the output must be NaN.
struct Stated {
  Index batch, head, row, col;
  double value;
};

// Another problem whose whole output equals the rows [q_begin, ...) of the case's.
struct Alternative {
  Problem problem;
  OwnedInputs inputs;
  Index q_begin = 0;
};

struct AttentionCase {
  Problem problem;
  OwnedInputs inputs;
  std::vector<Stated> stated;
  std::vector<Alternative> equal_to;
};

struct CaseEntry {
  const char* id;
  const char* title;
  std::vector<AttentionCase> (*build)();
};

// All cases; building one is cheap, building all is not needed for any.
std::vector<CaseEntry> attention_cases();

// A problem that validate() rejects, naming the field.
struct RejectedCase {
  std::string id;
  Problem problem;
  std::string field;
};
std::vector<RejectedCase> rejected_cases();

// What becomes of an output whose bound is infinite, as where fp32 overflows: it fails unless it is
// right to the bit, any number passes (but no NaN), or nothing is asked of it.
enum class Unbounded { fails, passes, is_free };

// What is tested: the whole output of a problem (an empty lse = it has none), and the bound on its
// rounding errors.
struct Subject {
  std::function<Attention(const Problem&, const Inputs&)> compute;
  std::function<ErrorBound(const HeadConditions&, const Sequence&)> bound;
  Unbounded unbounded = Unbounded::fails;
};
Subject reference_subject();

// What is wrong with the subject's output: against the definition in extended precision, against
// the stated values, and against the alternatives. Empty when right.
std::vector<std::string> failures(const AttentionCase& attention_case, const Subject& subject);
// How many finite elements of the output the subject promises nothing about.
Index unbounded_elements(const AttentionCase& attention_case, const Subject& subject);
// The case as it is where inputs are numbers of a recipe's format: with such inputs, and without
// the stated finite values if that has changed any.
AttentionCase rounded_case(AttentionCase attention_case, const Recipe& recipe);

// For the files that build cases.
std::vector<CaseEntry> mask_cases();
std::vector<CaseEntry> packing_cases();
std::vector<CaseEntry> score_cases();
std::vector<CaseEntry> size_cases();
std::vector<CaseEntry> extreme_cases();

AttentionCase normal_case(const Problem& problem, std::uint64_t seed);
void fill(Tensor<double>& tensor, double value);
// States every column of a row and its lse.
void state_row(AttentionCase& c, Index row, double o, double lse);
// The same rows and keys as a problem of their own, without packing or block mask.
Alternative cut_out(const AttentionCase& c, Interval rows, Interval keys);
// One alternative for each packed sequence.
void equal_separately(AttentionCase& c);

}  // namespace flashbound::testing
