// The closed form of one head of one sequence, a function for each algorithm. Valid for shapes,
// masks and tiles that validate() accepts, and for lengths of zero. Derived in closed_forms.md.
#pragma once

#include "core/program.hpp"
#include "core/schedule.hpp"
#include "core/units.hpp"
#include "core/visible_blocks.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace flashbound {

struct TensorForm {
  std::string_view tensor;
  Width width = Width::data;
  Elements read{};
  Elements written{};
};

struct HeadForm {
  std::vector<TensorForm> tensors;  // in the order that the algorithm declares them
  Elements sram_peak{};
  Flops flops{};
  Events exponentials{};
  Events rescales_at_most{};
};

HeadForm standard_form(const Schedule& schedule);
HeadForm standard_tiled_form(const Schedule& schedule);
HeadForm rabe_staats_form(const Schedule& schedule);
HeadForm flash1_form(const Schedule& schedule);
HeadForm flash1_charged_start_form(const Schedule& schedule);
HeadForm flash1_skip_first_read_form(const Schedule& schedule);
HeadForm flash2_form(const Schedule& schedule);
HeadForm split_kv_form(const Schedule& schedule);
HeadForm small_cache_form(const Schedule& schedule);
HeadForm small_cache_spill_both_form(const Schedule& schedule);
HeadForm standard_backward_form(const Schedule& schedule);
HeadForm flash1_backward_form(const Schedule& schedule);
HeadForm flash2_backward_form(const Schedule& schedule);

// The letters of the papers. Lengths are elements of one column: times a head_dim, a matrix.
struct Letters {
  explicit Letters(const Schedule& s)
      : n_q(s.shape.seqlen_q),
        n_kv(s.shape.seqlen_kv),
        d(s.shape.head_dim),
        dv(s.shape.head_dim_v),
        br(std::min(s.tile.block_q, s.shape.seqlen_q)),
        bc(std::min(s.tile.block_kv, s.shape.seqlen_kv)),
        tr(Partition{s.shape.seqlen_q, s.tile.block_q}.count()),
        tc(Partition{s.shape.seqlen_kv, s.tile.block_kv}.count()) {}

  Elements n_q, n_kv;
  // Int128, so that products of a few of them cannot overflow.
  Int128 d, dv;
  Int128 br, bc;  // rows of the largest block of queries, of keys
  Int128 tr, tc;  // numbers of blocks
};

// FLOPs of a product that contracts or expands every score over `width` columns.
inline Flops product_flops(Int128 width, Elements scores) {
  return Flops(checked_mul(checked_mul(2, width), scores.value()));
}
inline Events events(Elements elements) { return Events(elements.value()); }

// The largest of `resident` over the blocks of queries, which only their class decides.
template <class Resident>
Elements peak_over_q_blocks(const VisibleBlocks& visible, const Resident& resident) {
  Elements peak;
  for (const QBlockClass& block : visible.classes) {
    if (block.rows > 0) peak = std::max(peak, Elements(resident(block)));
  }
  return peak;
}

}  // namespace flashbound
