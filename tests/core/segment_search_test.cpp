// The lemma behind the segment bound, by trying every execution of tiny instances: how many scores
// can a memory of M words finish with X reads, from any start?
#include "core/segment_bound.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace flashbound {
namespace {

// Words of Q and K in fast memory as bits, and for each pair the products that its word has summed
// (0: it has no word) and whether it was finished.
struct State {
  std::uint32_t words = 0;
  std::uint32_t sums = 0;      // d bits a pair
  std::uint32_t finished = 0;  // a bit a pair
  int reads_left = 0;
};

class Executions {
 public:
  Executions(int rows, int keys, int d, int memory)
      : rows_(rows), keys_(keys), d_(d), memory_(memory) {}

  // Most scores finished with that many reads.
  int most_finished(int reads) {
    const std::size_t states = std::size_t{1} << (bits_of_words() + bits_of_sums() + pairs());
    seen_.assign(states * static_cast<std::size_t>(reads + 1), 0);
    for (std::uint32_t words = 0; words < 1U << bits_of_words(); ++words) {
      for (std::uint32_t sums = 0; sums < 1U << bits_of_sums(); ++sums) {
        // A score that is finished at the start is not finished in the segment.
        bool whole = false;
        for (int p = 0; p < pairs(); ++p) whole = whole || sum_of(sums, p) == all_products();
        if (!whole) visit({words, sums, 0, reads});
      }
    }
    while (!open_.empty()) {
      const State state = open_.back();
      open_.pop_back();
      most_ = std::max(most_, std::popcount(state.finished));
      move(state);
    }
    return most_;
  }

 private:
  int pairs() const { return rows_ * keys_; }
  int bits_of_words() const { return (rows_ + keys_) * d_; }
  int bits_of_sums() const { return pairs() * d_; }
  std::uint32_t all_products() const { return (1U << d_) - 1; }
  std::uint32_t sum_of(std::uint32_t sums, int pair) const {
    return sums >> (pair * d_) & all_products();
  }
  std::uint32_t with_sum(std::uint32_t sums, int pair, std::uint32_t sum) const {
    return (sums & ~(all_products() << (pair * d_))) | sum << (pair * d_);
  }

  int held(const State& s) const {
    int held = std::popcount(s.words);
    for (int p = 0; p < pairs(); ++p) held += sum_of(s.sums, p) != 0 ? 1 : 0;
    return held;
  }

  void visit(const State& s) {
    if (held(s) > memory_) return;
    std::size_t index = static_cast<std::size_t>(s.reads_left);
    index = index << bits_of_words() | s.words;
    index = index << bits_of_sums() | s.sums;
    index = index << pairs() | s.finished;
    if (seen_[index] != 0) return;
    seen_[index] = 1;
    open_.push_back(s);
  }

  void move(const State& s) {
    for (int w = 0; w < bits_of_words(); ++w) {
      State next = s;
      next.words ^= 1U << w;  // dropped, or read
      if ((s.words >> w & 1U) == 0) --next.reads_left;
      if (next.reads_left >= 0) visit(next);
    }
    for (int p = 0; p < pairs(); ++p) {
      State dropped = s;
      dropped.sums = with_sum(s.sums, p, 0);
      visit(dropped);
      for (std::uint32_t sum = 1; sum < all_products(); ++sum) {  // a partial sum is read
        State read = s;
        read.sums = with_sum(s.sums, p, sum);
        if (--read.reads_left >= 0) visit(read);
      }
      for (int k = 0; k < d_; ++k) form(s, p, k);
    }
  }

  // A product joins the word of its pair, which may take that of a factor.
  void form(const State& s, int pair, int k) {
    const std::uint32_t q = 1U << (pair / keys_ * d_ + k);
    const std::uint32_t key = 1U << ((rows_ + pair % keys_) * d_ + k);
    if ((s.words & q) == 0 || (s.words & key) == 0) return;
    const std::uint32_t sum = sum_of(s.sums, pair);
    if ((sum >> k & 1U) != 0) return;
    for (const std::uint32_t lost : {0U, q, key}) {
      State next = s;
      next.words &= ~lost;
      next.sums = with_sum(s.sums, pair, sum | 1U << k);
      if ((sum | 1U << k) == all_products()) next.finished |= 1U << pair;
      visit(next);
    }
  }

  int rows_, keys_, d_, memory_;
  int most_ = 0;
  std::vector<std::uint8_t> seen_;
  std::vector<State> open_;
};

}  // namespace

TEST_SUITE("core.segment_search") {
  TEST_CASE("no execution finishes more scores in a segment than the lemma says") {
    double largest_share = 0;
    for (const auto& [rows, keys, d] :
         {std::array<int, 3>{2, 2, 1}, {3, 2, 1}, {3, 3, 1}, {2, 2, 2}, {2, 1, 3}}) {
      for (int memory = 2; memory <= 6; ++memory) {
        for (int reads = 0; reads <= 3; ++reads) {
          const int most = Executions(rows, keys, d, memory).most_finished(reads);
          const Int128 lemma = segment_advance(d, d, ComputationClass::scores, memory + reads);
          CAPTURE(rows);
          CAPTURE(keys);
          CAPTURE(d);
          CAPTURE(memory);
          CAPTURE(reads);
          CHECK(most <= lemma);
          largest_share = std::max(largest_share, most / static_cast<double>(lemma));
        }
      }
    }
    // Scores need words of their own while they are formed, which the lemma does not count.
    MESSAGE("at most " << largest_share << " of what the lemma allows");
    CHECK(largest_share > 0.5);
  }
}

}  // namespace flashbound
