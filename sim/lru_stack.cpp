#include "sim/lru_stack.hpp"

#include "core/errors.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint32_t kWordBits = 64;
constexpr std::size_t kShift = 4;  // log2 of the children of a node
// Times are 32 bits, and the timeline has four times as many as units: a unit is moved by a
// compaction once in three touches at most.
constexpr Index kUnitsMax = Index{1} << 29;
constexpr Index kTimesPerUnit = 4;

// Bits [begin, end) of a word, where 0 <= begin < end <= 64.
std::uint64_t mask_of(std::uint32_t begin, std::uint32_t end) {
  return (~std::uint64_t{0} >> (kWordBits - (end - begin))) << begin;
}

std::uint32_t count_of(std::uint64_t bits) {
  return static_cast<std::uint32_t>(std::popcount(bits));
}

// Calls visit(word, mask) for each word that [begin, end) meets.
template <class Visit>
void for_each_word(std::uint32_t begin, std::uint32_t end, const Visit& visit) {
  while (begin < end) {
    const std::uint32_t word = begin / kWordBits;
    const std::uint32_t stop = std::min(end, (word + 1) * kWordBits);
    visit(word, mask_of(begin % kWordBits, stop - word * kWordBits));
    begin = stop;
  }
}

}  // namespace

LruStack::LruStack(Index units) {
  if (units < 0 || units > kUnitsMax) {
    reject("units", std::to_string(units), "0 to " + std::to_string(kUnitsMax));
  }
  last_.assign(static_cast<std::size_t>(units), kNever);
  constexpr Index kGranule = Index{kWordBits} << (kLevels * kShift);
  const Index length = (kTimesPerUnit * units / kGranule + 1) * kGranule;
  length_ = static_cast<std::uint32_t>(std::min<Index>(length, kNoRun / kGranule * kGranule));
  std::size_t children = length_ / kWordBits;
  bits_.assign(children, 0);
  for (std::vector<std::uint32_t>& level : before_) {
    level.assign(children, 0);
    children >>= kShift;
  }
}

std::uint32_t LruStack::touch_apart(std::uint32_t unit, std::uint32_t before) {
  settle();
  if (now_ == length_) {
    last_[unit] = before;
    compact();
    before = last_[unit];
    last_[unit] = now_;
  }
  if (now_ == word_end_) enter_word();
  if (before == kNever) {
    run_begin_ = run_end_ = kNoRun;
    set(now_, now_ + 1);
    ++now_;
    ++live_;
    return 0;
  }
  run_begin_ = before;
  run_end_ = before + 1;
  run_distance_ = live_ - bits_before(before);
  ++now_;
  return run_distance_;
}

// New ends first: a run longer than its period touches again what it has touched.
void LruStack::settle() {
  if (run_end_ == kNoRun) return;
  set(now_ - (run_end_ - run_begin_), now_);
  clear(run_begin_, run_end_);
  run_begin_ = run_end_ = kNoRun;
}

std::uint32_t LruStack::bits_before(std::uint32_t time) const {
  const std::uint32_t word = time / kWordBits;
  std::uint32_t sum = count_of(bits_[word] & ((std::uint64_t{1} << (time % kWordBits)) - 1));
  std::size_t child = word;
  for (const std::vector<std::uint32_t>& level : before_) {
    sum += level[child];
    child >>= kShift;
  }
  return sum;
}

std::uint32_t LruStack::bits_in(std::size_t level, std::size_t child) const {
  if (level == 0) return count_of(bits_[child]);
  const std::size_t last = child * kFanout + kFanout - 1;
  return before_[level - 1][last] + bits_in(level - 1, last);
}

void LruStack::set(std::uint32_t begin, std::uint32_t end) {
  for_each_word(begin, end, [&](std::uint32_t word, std::uint64_t mask) { bits_[word] |= mask; });
}

void LruStack::clear(std::uint32_t begin, std::uint32_t end) {
  for_each_word(begin, end, [&](std::uint32_t word, std::uint64_t mask) {
    bits_[word] &= ~mask;
    const std::uint32_t cleared = count_of(mask);
    std::size_t child = word;
    for (std::size_t level = 0; level < kLevels; ++level) {
      std::uint32_t* siblings = &before_[level][child / kFanout * kFanout];
      const std::size_t place = child % kFanout;
      // Without a branch, so that it becomes a few vector instructions.
      for (std::size_t c = 0; c < kFanout; ++c) siblings[c] -= c > place ? cleared : 0;
      child >>= kShift;
    }
    std::vector<std::uint32_t>& top = before_[kLevels];
    for (std::size_t c = child + 1; c < top.size(); ++c) top[c] -= cleared;
  });
}

// What lies before the word of now_, at each level at which it is the first of a child.
void LruStack::enter_word() {
  const std::size_t word = now_ / kWordBits;
  word_end_ = now_ + kWordBits;
  for (std::size_t level = 0; level <= kLevels; ++level) {
    const std::size_t child = word >> (level * kShift);
    if (child << (level * kShift) != word) return;
    const bool first = level < kLevels ? child % kFanout == 0 : child == 0;
    before_[level][child] = first ? 0 : before_[level][child - 1] + bits_in(level, child - 1);
  }
}

void LruStack::compact() {
  for (std::uint32_t& time : last_) {
    if (time != kNever) time = bits_before(time);
  }
  std::fill(bits_.begin(), bits_.end(), 0);
  now_ = word_end_ = 0;
  while (now_ < live_) {
    enter_word();
    const std::uint32_t end = std::min(live_, word_end_);
    set(now_, end);
    now_ = end;
  }
}

}  // namespace flashbound
