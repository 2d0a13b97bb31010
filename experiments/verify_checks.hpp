// The checks of `flashbound verify`: each says what agreed with what, by how much they may differ
// and by how much they do.
#pragma once

#include "core/error_bound.hpp"
#include "core/parallel_for.hpp"
#include "core/problem.hpp"
#include "core/programs.hpp"
#include "core/reference.hpp"
#include "core/tensor.hpp"

#include <string>
#include <vector>

namespace flashbound {

// One comparison of two ways to the same figure.
struct VerifyCheck {
  std::string problem;
  std::string check;  // e.g. "count machine = closed form"
  std::string algorithm;
  std::string quantity;  // where the two differ most: a tensor, "flops", "o", "lse"
  double worst_difference = 0;
  double allowed_difference = 0;  // 0 for counts, which are exact
  double share = 0;               // worst / allowed; infinite when it may not differ and does
  bool passed = false;
};

// The two as one: passed if both did, reporting the one nearer to its allowance or further past it.
VerifyCheck worse(const VerifyCheck& a, const VerifyCheck& b);

// Whole problem: the count machine against the closed form, every quantity, exactly.
VerifyCheck check_closed_form(const std::string& name, const Algorithm& algorithm,
                              const Problem& problem, const Tile& tile);

// One head: the bytes and the residency of the record log against the count machine, exactly.
VerifyCheck check_record(const std::string& name, const Algorithm& algorithm,
                         const Problem& problem, const Tile& tile);

// One head: the bytes at the addresses of the trace machine against the count machine, exactly.
VerifyCheck check_trace(const std::string& name, const Algorithm& algorithm, const Problem& problem,
                        const Tile& tile);

// Whole problem: no fewer bytes are moved than the lower bound for a fast memory of the tiles.
VerifyCheck check_lower_bound(const std::string& name, const Algorithm& algorithm,
                              const Problem& problem, const Tile& tile);

// One head of one sequence with its reference and what its error bounds need, computed once and
// compared with many programs. Views the problem and the inputs: keep them alive.
struct NumericTarget {
  std::string name;
  const Problem* problem = nullptr;
  Tile tile{};
  Inputs inputs;
  Sequence sequence{};
  Index head = 0;
  HeadOutput reference;
  HeadConditions conditions;
  ErrorBound reference_bound;
};
NumericTarget numeric_target(const std::string& name, const Problem& problem, const Tile& tile,
                             const Inputs& inputs, const Sequence& sequence, Index head,
                             const ParallelFor& parallel_for);

// The program run tile by tile in `format` against the fp64 reference: O, and lse where the program
// has it (or row_max and row_sum, which give it). Every element must be within the two derived
// error bounds together. Reports the element that comes nearest to its bound, or furthest past it.
VerifyCheck check_numeric(const NumericTarget& target, const Algorithm& algorithm,
                          NumberFormat format);

// Whether exact arithmetic on a head of this problem takes seconds rather than minutes.
bool affordable_exactly(const Problem& problem);

// The fp64 reference against the exact answer: its true error, within its own derived bound.
// Elements that exact arithmetic leaves undecided fail.
VerifyCheck check_exact(const NumericTarget& target);

}  // namespace flashbound
