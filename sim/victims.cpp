#include "sim/victims.hpp"

namespace flashbound {

ListVictims::ListVictims(Index sets, Index ways, bool move_on_hit)
    : slots_(static_cast<std::uint32_t>(sets * ways)),
      ways_(static_cast<std::uint32_t>(ways)),
      move_on_hit_(move_on_hit),
      after_(static_cast<std::size_t>(sets * ways + sets)),
      before_(after_.size()) {
  for (std::uint32_t set = 0; set < static_cast<std::uint32_t>(sets); ++set) {
    after_[first_of(set)] = before_[first_of(set)] = first_of(set);
  }
}

void ListVictims::append(std::uint32_t slot) {
  const std::uint32_t ring = first_of(slot / ways_);
  before_[slot] = before_[ring];
  after_[slot] = ring;
  after_[before_[ring]] = slot;
  before_[ring] = slot;
}

void ListVictims::unlink(std::uint32_t slot) {
  after_[before_[slot]] = after_[slot];
  before_[after_[slot]] = before_[slot];
}

// A slot that gets a new line was the first of its set, or not in the list yet.
void ListVictims::enter(std::uint32_t slot, std::uint32_t) {
  if (after_[first_of(slot / ways_)] == slot) unlink(slot);
  append(slot);
}

void ListVictims::hit(std::uint32_t slot, std::uint32_t) {
  if (!move_on_hit_) return;
  unlink(slot);
  append(slot);
}

RandomVictims::RandomVictims(Index ways, std::uint64_t seed)
    : ways_(static_cast<std::uint32_t>(ways)), random_(seed) {}

std::uint32_t RandomVictims::victim(std::uint32_t set) {
  return set * ways_ + static_cast<std::uint32_t>(random_() % ways_);
}

TreeVictims::TreeVictims(Index sets, Index ways)
    : ways_(static_cast<std::uint32_t>(ways)), second_(static_cast<std::size_t>(sets * ways), 0) {}

void TreeVictims::hit(std::uint32_t slot, std::uint32_t) {
  const std::size_t set = std::size_t{slot / ways_} * ways_;
  for (std::uint32_t node = ways_ + slot % ways_; node > 1; node /= 2) {
    second_[set + node / 2] = node % 2 == 0;  // away from where it came from
  }
}

std::uint32_t TreeVictims::victim(std::uint32_t set) const {
  std::uint32_t node = 1;
  while (node < ways_) node = 2 * node + second_[std::size_t{set} * ways_ + node];
  return set * ways_ + node - ways_;
}

LatestVictims::LatestVictims(Index sets, Index ways)
    : ways_(static_cast<std::uint32_t>(ways)),
      next_use_(static_cast<std::size_t>(sets * ways)),
      heaps_(static_cast<std::size_t>(sets)) {}

void LatestVictims::hit(std::uint32_t slot, std::uint32_t next_use) {
  next_use_[slot] = next_use;
  heaps_[slot / ways_].emplace(next_use, ~slot);
}

std::uint32_t LatestVictims::victim(std::uint32_t set) {
  auto& heap = heaps_[set];
  while (next_use_[~heap.top().second] != heap.top().first) heap.pop();
  return ~heap.top().second;
}

}  // namespace flashbound
