// How a case is checked, and what its builders share.
#include "core/quantization.hpp"
#include "tests/core/attention_cases.hpp"
#include "tests/core/attention_oracle.hpp"
#include "tests/core/one_head.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace flashbound::testing {
namespace {

// Bounds of every element, laid out as the output.
struct Allowed {
  Tensor<double> o, lse;
};

Allowed allowed_for(const Problem& p, const Inputs& in, const Subject& subject) {
  Allowed allowed{Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}),
                  Tensor<double>({p.batch, p.num_heads_q, p.seqlen_q, 1})};
  for (Index s = 0; s < sequence_count(p); ++s) {
    const Sequence at = sequence(p, s);
    for (Index h = 0; h < p.num_heads_q; ++h) {
      const ErrorBound bound = subject.bound(head_conditions(p, in, at, h), at);
      for (Index r = 0; r < at.seqlen_q; ++r) {
        allowed.lse.view()(at.batch, h, at.q_begin + r, 0) = bound.lse(r);
        for (Index c = 0; c < p.head_dim_v; ++c) {
          allowed.o.view()(at.batch, h, at.q_begin + r, c) = bound.o(r, c);
        }
      }
    }
  }
  return allowed;
}

struct Place {
  Index batch, head, row, col;
};

class Failures {
 public:
  Failures(const char* against, Unbounded unbounded) : against_(against), unbounded_(unbounded) {}
  void compare(const Place& at, long double actual, long double expected, long double allowed) {
    if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return;
    if (unbounded_ == Unbounded::is_free && !std::isfinite(allowed)) return;
    const bool says_something = unbounded_ == Unbounded::passes || std::isfinite(allowed);
    if (std::abs(actual - expected) <= allowed && says_something) return;
    std::ostringstream text;
    text << against_ << ": " << (at.col == kLse ? "lse" : "o") << " of batch " << at.batch
         << " head " << at.head << " row " << at.row << " col " << at.col << " = " << actual
         << " and should be " << expected << " within " << allowed;
    if (texts_.size() < 5) texts_.push_back(text.str());
  }
  void append_to(std::vector<std::string>& all) const {
    all.insert(all.end(), texts_.begin(), texts_.end());
  }

 private:
  const char* against_;
  Unbounded unbounded_;
  std::vector<std::string> texts_;
};

template <class T>
T element(const Tensor<T>& o, const Tensor<T>& lse, const Place& at) {
  return at.col == kLse ? lse.view()(at.batch, at.head, at.row, 0)
                        : o.view()(at.batch, at.head, at.row, at.col);
}

// Calls f for each element of O and, where there is one, of lse.
template <class F>
void for_each_place(const Problem& p, const Attention& output, const F& f) {
  const Index first = output.lse.elements.empty() ? 0 : kLse;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      for (Index r = 0; r < p.seqlen_q; ++r) {
        for (Index c = first; c < p.head_dim_v; ++c) f(Place{b, h, r, c});
      }
    }
  }
}

}  // namespace

Subject reference_subject() {
  return {[](const Problem& p, const Inputs& in) { return reference(p, in); },
          [](const HeadConditions& conditions, const Sequence&) {
            return error_bound(conditions, reference_rounding());
          }};
}

Index unbounded_elements(const AttentionCase& c, const Subject& subject) {
  const Inputs in = c.inputs.view();
  const Allowed allowed = allowed_for(c.problem, in, subject);
  const ExactAttention exact = exact_attention(c.problem, in);
  Index count = 0;
  const auto add = [&](const auto& values, const auto& bounds) {
    for (std::size_t at = 0; at < values.size(); ++at) {
      count += std::isfinite(values[at]) && !std::isfinite(bounds[at]) ? 1 : 0;
    }
  };
  add(exact.o.elements, allowed.o.elements);
  add(exact.lse.elements, allowed.lse.elements);
  return count;
}

AttentionCase rounded_case(AttentionCase c, const Recipe& recipe) {
  const auto round = [&](const Problem& p, OwnedInputs& inputs) {
    const OwnedInputs before = inputs;
    inputs = rounded_inputs(recipe, p, inputs.view());
    const auto same = [](const Tensor<double>& a, const Tensor<double>& b) {
      return std::equal(
          a.elements.begin(), a.elements.end(), b.elements.begin(),
          [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
    };
    return same(before.q, inputs.q) && same(before.k, inputs.k) && same(before.v, inputs.v);
  };
  const bool unchanged = round(c.problem, c.inputs);
  for (Alternative& other : c.equal_to) round(other.problem, other.inputs);
  // Scales depend on what else is in a block or a tensor.
  if (recipe.quantization.scaling != Scaling::none) c.equal_to.clear();
  if (!unchanged) {
    std::erase_if(c.stated, [](const Stated& s) { return std::isfinite(s.value); });
  }
  return c;
}

std::vector<std::string> failures(const AttentionCase& c, const Subject& subject) {
  const Inputs in = c.inputs.view();
  const Attention output = subject.compute(c.problem, in);
  const Allowed allowed = allowed_for(c.problem, in, subject);
  const ExactAttention exact = exact_attention(c.problem, in);
  std::vector<std::string> all;

  Failures definition("definition", subject.unbounded);
  for_each_place(c.problem, output, [&](const Place& at) {
    definition.compare(at, element(output.o, output.lse, at), element(exact.o, exact.lse, at),
                       element(allowed.o, allowed.lse, at));
  });
  definition.append_to(all);

  Failures stated("stated value", subject.unbounded);
  for (const Stated& s : c.stated) {
    const Place at{s.batch, s.head, s.row, s.col};
    if (at.col == kLse && output.lse.elements.empty()) continue;
    // The statement itself is rounded once or twice.
    const double own = std::isfinite(s.value) ? 0x1p-51 * std::abs(s.value) : 0;
    stated.compare(at, element(output.o, output.lse, at), s.value,
                   element(allowed.o, allowed.lse, at) + own);
  }
  stated.append_to(all);

  Failures alternative("alternative", subject.unbounded);
  for (const Alternative& other : c.equal_to) {
    const Attention expected = subject.compute(other.problem, other.inputs.view());
    const Allowed its = allowed_for(other.problem, other.inputs.view(), subject);
    for_each_place(other.problem, expected, [&](const Place& there) {
      const Place here{there.batch, there.head, there.row + other.q_begin, there.col};
      alternative.compare(here, element(output.o, output.lse, here),
                          element(expected.o, expected.lse, there),
                          element(allowed.o, allowed.lse, here) + element(its.o, its.lse, there));
    });
  }
  alternative.append_to(all);
  return all;
}

std::vector<CaseEntry> attention_cases() {
  std::vector<CaseEntry> all;
  for (const auto& part :
       {mask_cases(), packing_cases(), score_cases(), size_cases(), extreme_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<RejectedCase> rejected_cases() {
  std::vector<RejectedCase> cases;
  const auto add = [&](const char* id, const char* field, const auto& change) {
    Problem problem = one_head({2, 2, 4, 4});
    change(problem);
    cases.push_back({id, problem, field});
  };
  add("A15", "window_right", [](Problem& p) {
    p.window_left = -1;
    p.window_right = -3;
  });
  add("A15", "window_left", [](Problem& p) { p.window_left = -2; });
  for (const Index heads_q : {3, 33}) {
    add("A40", "num_heads_q", [&](Problem& p) {
      p.num_heads_q = heads_q;
      p.num_heads_kv = 2;
    });
  }
  return cases;
}

AttentionCase normal_case(const Problem& problem, std::uint64_t seed) {
  return {problem, normal_inputs(problem, seed), {}, {}};
}

void fill(Tensor<double>& tensor, double value) {
  for (double& element : tensor.elements) element = value;
}

void state_row(AttentionCase& c, Index row, double o, double lse) {
  for (Index b = 0; b < c.problem.batch; ++b) {
    for (Index h = 0; h < c.problem.num_heads_q; ++h) {
      for (Index col = 0; col < c.problem.head_dim_v; ++col)
        c.stated.push_back({b, h, row, col, o});
      c.stated.push_back({b, h, row, kLse, lse});
    }
  }
}

namespace {

Tensor<double> rows_of(const Tensor<double>& tensor, Interval rows) {
  Tensor<double> result({tensor.shape[0], tensor.shape[1], rows.size(), tensor.shape[3]});
  for (Index b = 0; b < tensor.shape[0]; ++b) {
    for (Index h = 0; h < tensor.shape[1]; ++h) {
      for (Index r = 0; r < rows.size(); ++r) {
        for (Index c = 0; c < tensor.shape[3]; ++c) {
          result.view()(b, h, r, c) = tensor.view()(b, h, rows.begin + r, c);
        }
      }
    }
  }
  return result;
}

}  // namespace

Alternative cut_out(const AttentionCase& c, Interval rows, Interval keys) {
  Problem problem = c.problem;
  problem.seqlen_q = rows.size();
  problem.seqlen_kv = keys.size();
  problem.cu_seqlens_q.clear();
  problem.cu_seqlens_kv.clear();
  problem.block_mask.reset();
  return {problem,
          {rows_of(c.inputs.q, rows), rows_of(c.inputs.k, keys), rows_of(c.inputs.v, keys)},
          rows.begin};
}

void equal_separately(AttentionCase& c) {
  for (Index s = 0; s < sequence_count(c.problem); ++s) {
    const Sequence at = sequence(c.problem, s);
    c.equal_to.push_back(cut_out(c, {at.q_begin, at.q_begin + at.seqlen_q},
                                 {at.kv_begin, at.kv_begin + at.seqlen_kv}));
  }
}

}  // namespace flashbound::testing
