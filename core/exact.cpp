// exact() and exact_head(): blocks of queries put together.
#include "core/exact.hpp"

#include "core/errors.hpp"
#include "core/exact/ball.hpp"
#include "core/exact/forward.hpp"
#include "core/exact/precision.hpp"
#include "core/reference.hpp"

#include <algorithm>
#include <string>

namespace flashbound {
namespace {

constexpr int kLowestPrecision = 64;

struct Part {
  Index sequence = 0;
  Index head = 0;
  Index block = 0;
};

std::vector<Part> parts_of(const Problem& problem) {
  std::vector<Part> parts;
  for (Index s = 0; s < sequence_count(problem); ++s) {
    const Index blocks = Partition{sequence(problem, s).seqlen_q, kExactTile.block_q}.count();
    for (Index head = 0; head < problem.num_heads_q; ++head) {
      for (Index block = 0; block < blocks; ++block) parts.push_back({s, head, block});
    }
  }
  return parts;
}

// What a part reports beside its numbers, with indices into the whole tensors.
struct Report {
  std::vector<Index> undecided_o;
  std::vector<Index> undecided_lse;
  int precision = 0;
};

Report write(const ExactBlock& block, const Problem& problem, const Sequence& at, Index head,
             ExactAttention& result) {
  const Index columns = problem.head_dim_v;
  const Index first =
      (at.batch * problem.num_heads_q + head) * problem.seqlen_q + at.q_begin + block.rows.begin;
  Report report{{}, {}, block.precision};
  std::copy_n(block.o.data(), block.o.size(), result.o.elements.begin() + first * columns);
  std::copy_n(block.lse.data(), block.lse.size(), result.lse.elements.begin() + first);
  for (const Index n : block.undecided_o) report.undecided_o.push_back(first * columns + n);
  for (const Index n : block.undecided_lse) report.undecided_lse.push_back(first + n);
  return report;
}

void append(const std::vector<Index>& more, Index offset, std::vector<Index>& all) {
  for (const Index n : more) all.push_back(offset + n);
}

}  // namespace

void validate(const ExactOptions& options) {
  if (options.first_precision < kLowestPrecision) {
    reject("first_precision", std::to_string(options.first_precision),
           "at least " + std::to_string(kLowestPrecision));
  }
  if (options.precision_cap < options.first_precision) {
    reject("precision_cap", std::to_string(options.precision_cap),
           "at least first_precision = " + std::to_string(options.first_precision));
  }
}

ExactAttention exact(const Problem& problem, const Inputs& inputs, const ExactOptions& options,
                     const ParallelFor& parallel_for) {
  validate(problem, Emptiness::allowed);
  validate(problem, inputs);
  validate(options);
  ExactAttention result;
  result.o =
      Tensor<double>({problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v});
  result.lse = Tensor<double>({problem.batch, problem.num_heads_q, problem.seqlen_q, 1});
  if (result.lse.elements.empty()) return result;
  const std::vector<Part> parts = parts_of(problem);
  std::vector<Report> reports(parts.size());
  parallel_for(static_cast<Index>(parts.size()), [&](Index index) {
    const FlintThread flint;
    const Part& part = parts[static_cast<std::size_t>(index)];
    const Sequence at = sequence(problem, part.sequence);
    const ExactBlock block = exact_block(Head(problem, inputs, at, part.head), part.block, options);
    reports[static_cast<std::size_t>(index)] = write(block, problem, at, part.head, result);
  });
  for (const Report& report : reports) {
    append(report.undecided_o, 0, result.undecided_o);
    append(report.undecided_lse, 0, result.undecided_lse);
    result.precision = std::max(result.precision, report.precision);
  }
  // Packed sequences interleave heads.
  std::sort(result.undecided_o.begin(), result.undecided_o.end());
  std::sort(result.undecided_lse.begin(), result.undecided_lse.end());
  return result;
}

ExactHead exact_head(const Problem& problem, const Inputs& inputs, const Sequence& sequence,
                     Index head, const ExactOptions& options, const ParallelFor& parallel_for) {
  validate(problem, inputs);
  validate(options);
  const Head at(problem, inputs, sequence, head);
  const Index count = at.schedule().with_tile(kExactTile).q_block_count();
  std::vector<ExactBlock> blocks(static_cast<std::size_t>(count));
  parallel_for(count, [&](Index i) {
    const FlintThread flint;
    blocks[static_cast<std::size_t>(i)] = exact_block(at, i, options);
  });
  ExactHead result;
  result.o.resize(sequence.seqlen_q, problem.head_dim_v);
  result.lse.resize(sequence.seqlen_q);
  for (const ExactBlock& block : blocks) {
    result.o.middleRows(block.rows.begin, block.rows.size()) = block.o;
    result.lse.segment(block.rows.begin, block.rows.size()) = block.lse;
    append(block.undecided_o, block.rows.begin * problem.head_dim_v, result.undecided_o);
    append(block.undecided_lse, block.rows.begin, result.undecided_lse);
    result.precision = std::max(result.precision, block.precision);
  }
  return result;
}

}  // namespace flashbound
