// Closed forms: the same quantities as the count machine's, from formulas in the sizes. The two
// are derived apart (a machine walks the program, a formula never sees it) and must agree exactly.
// Formulas with their derivation: core/closed_forms.md.
#pragma once

#include "core/io_count.hpp"
#include "core/problem.hpp"

#include <string_view>

namespace flashbound {

// Counts of the algorithm called `algorithm` for the whole problem. Time is logarithmic in the
// lengths, and linear in the sequences of cu_seqlens; with a block mask, one look at its cells for
// every block of queries. `problem` and `tile` are valid. Throws ConfigError for a name that no
// algorithm has.
IoCount closed_form(std::string_view algorithm, const Problem& problem, const Tile& tile,
                    NumberFormat dtype);

// What a search over tiles needs of it: the same sums and residency without the tensors' names.
struct ClosedTraffic {
  Bytes read{};
  Bytes written{};
  Elements sram_peak{};
};
ClosedTraffic closed_traffic(std::string_view algorithm, const Problem& problem, const Tile& tile,
                             NumberFormat dtype);

}  // namespace flashbound
