#include "core/footprint.hpp"

#include "core/count.hpp"
#include "core/program_ranges.hpp"
#include "core/visible_blocks.hpp"

#include <algorithm>
#include <cstddef>

namespace flashbound {
namespace {

// What the buffers of a kernel are charged for, each rule adding to the one before it.
enum class Charge { unshared, full_blocks, role_widths, stages };

Index role_bytes(TileRole role, NumberFormat dtype) {
  constexpr Index kAccumulatorBytesMin = 4;
  const Index bytes = byte_size(dtype);
  return role == TileRole::operand ? bytes : std::max(bytes, kAccumulatorBytesMin);
}

// How copies of a tile are counted: block by block, or where a closed form has them, by it.
enum class Copies { walked, closed };

// Sizes of buffers, which do not depend on which block is being worked on.
class BufferSizes {
 public:
  BufferSizes(const Program& program, const Schedule& schedule, Copies how)
      : program_(program), schedule_(schedule), how_(how), environment_(program.loops.size(), 0) {}

  // Largest size of a block: of the first one, or, padded, what the tile parameter says.
  Index extent(const Extent& extent, bool padded) const {
    if (padded && extent.loop != kNone) {
      const LoopRange& range = program_.loops[static_cast<std::size_t>(extent.loop)].range;
      return block_size(range.kind);
    }
    return interval_of(extent, schedule_, program_, environment_).size();
  }

  // Most copies that any blocks of the enclosing loops ask for.
  Index copies(const TileDecl& tile) {
    if (!tile.copied) return 1;
    if (how_ == Copies::closed && key_blocks_of_any_queries(tile.copies)) return key_blocks_max();
    std::vector<std::size_t> loops;
    append_loops_behind(tile.copies, loops);
    return most_copies(tile.copies, loops, 0);
  }

 private:
  Index block_size(RangeKind kind) const {
    switch (axis_of(kind)) {
      case Axis::query: return schedule_.tile.block_q;
      case Axis::key:
        return kind == RangeKind::visible_key_panels ? schedule_.tile.panel
                                                     : schedule_.tile.block_kv;
      case Axis::head_dim: return schedule_.tile.panel;
      case Axis::head_dim_v: return schedule_.tile.block_kv;
      case Axis::one:
      case Axis::split: return 1;
    }
    return 1;
  }

  bool key_blocks_of_any_queries(const LoopRange& range) const {
    return range.kind == RangeKind::visible_kv_blocks &&
           program_.loops[static_cast<std::size_t>(range.of)].range.kind == RangeKind::all_q_blocks;
  }
  Index key_blocks_max() {
    if (!key_blocks_max_) {
      const auto [whole, ragged] = visible_blocks(schedule_).classes;
      key_blocks_max_ = std::max(whole.kv_blocks_max, ragged.kv_blocks_max);
    }
    return *key_blocks_max_;
  }

  // The loops that `range` is seen from, and those that they are seen from, outermost first.
  void append_loops_behind(const LoopRange& range, std::vector<std::size_t>& loops) const {
    for (const int index : {range.split, range.of}) {
      const auto loop = static_cast<std::size_t>(std::max(index, 0));
      if (index == kNone || std::find(loops.begin(), loops.end(), loop) != loops.end()) continue;
      append_loops_behind(program_.loops[loop].range, loops);
      loops.push_back(loop);
    }
  }

  Index most_copies(const LoopRange& copies, const std::vector<std::size_t>& loops,
                    std::size_t at) {
    if (at == loops.size()) return loop_blocks(copies, schedule_, environment_).count();
    Index most = 0;
    const LoopRange& range = program_.loops[loops[at]].range;
    for_each_block(loop_blocks(range, schedule_, environment_), [&](Index block) {
      environment_[loops[at]] = block;
      most = std::max(most, most_copies(copies, loops, at + 1));
    });
    environment_[loops[at]] = 0;
    return most;
  }

  const Program& program_;
  const Schedule& schedule_;
  Copies how_;
  Environment environment_;
  std::optional<Index> key_blocks_max_{};  // once asked for
};

// One buffer as it is charged.
struct ChargedBuffer {
  const TileDecl& tile;
  Index rows = 0;
  Index cols = 0;
  Index copies = 0;
  Index element_bytes = 0;

  Bytes bytes() const {
    return bytes_of(Elements(checked_mul(checked_mul(rows, cols), copies)), element_bytes);
  }
};

struct KernelBuffers {
  const Program& program;
  BufferSizes& sizes;
  NumberFormat dtype;
  Index stages;

  // Calls visit(buffer) for each buffer of `kernel`.
  template <class Visit>
  void for_each(const Statement& kernel, Charge charge, const Visit& visit) const {
    walk(kernel.body, 0, charge, visit);
  }

  Bytes total(const Statement& kernel, Charge charge) const {
    Bytes sum;
    for_each(kernel, charge, [&](const ChargedBuffer& buffer) { sum += buffer.bytes(); });
    return sum;
  }

  // The kernel that needs most, the first of equals; a program has at least one.
  const Statement& largest(Charge charge) const {
    const Statement* most = &program.body.front();
    for (const Statement& kernel : program.body) {
      if (total(kernel, charge) > total(*most, charge)) most = &kernel;
    }
    return *most;
  }
  Bytes largest_total(Charge charge) const {
    Bytes most;
    for (const Statement& kernel : program.body) most = std::max(most, total(kernel, charge));
    return most;
  }

 private:
  template <class Visit>
  void walk(const std::vector<Statement>& body, int depth, Charge charge,
            const Visit& visit) const {
    for (const Statement& s : body) {
      if (s.op == Op::loop) walk(s.body, depth + 1, charge, visit);
      if (s.op != Op::load && s.op != Op::allocate) continue;
      const TileDecl& tile = program.tiles[static_cast<std::size_t>(s.result.tile)];
      const bool padded = charge >= Charge::full_blocks;
      const bool in_flight = s.op == Op::load && depth > 1 && tile.role == TileRole::operand;
      const Index buffered = charge >= Charge::stages && in_flight ? stages : 1;
      visit(ChargedBuffer{.tile = tile,
                          .rows = sizes.extent(tile.rows, padded),
                          .cols = sizes.extent(tile.cols, padded),
                          .copies = sizes.copies(tile) * buffered,
                          .element_bytes = charge >= Charge::role_widths
                                               ? role_bytes(tile.role, dtype)
                                               : byte_size(dtype)});
    }
  }
};

// Buffers of the kernel that needs most when everything is charged.
std::vector<FootprintBuffer> largest_buffers(const KernelBuffers& kernels) {
  const Statement& kernel = kernels.largest(Charge::stages);
  std::vector<FootprintBuffer> buffers;
  kernels.for_each(kernel, Charge::stages, [&](const ChargedBuffer& buffer) {
    buffers.push_back({kernel.label, buffer.tile.name, buffer.rows, buffer.cols, buffer.copies,
                       buffer.element_bytes, buffer.bytes()});
  });
  return buffers;
}

Footprint head_footprint(const Program& program, const Schedule& schedule, NumberFormat dtype,
                         Index stages) {
  BufferSizes sizes(program, schedule, Copies::walked);
  const KernelBuffers kernels{program, sizes, dtype, stages};
  Footprint result;
  const Elements peak = count_head(program, schedule, dtype).sram_peak;
  result.residency = bytes_of(peak, byte_size(dtype));
  const Bytes unshared = kernels.largest_total(Charge::unshared);
  const Bytes padded = kernels.largest_total(Charge::full_blocks);
  const Bytes widened = kernels.largest_total(Charge::role_widths);
  const Bytes staged = kernels.largest_total(Charge::stages);
  result.buffers = largest_buffers(kernels);
  result.unshared_buffers = unshared - result.residency;
  result.ragged_padding = padded - unshared;
  result.wider_elements = widened - padded;
  result.pipeline_stages = staged - widened;
  return result;
}

}  // namespace

Footprint footprint(const Program& program, const Problem& problem, const Tile& tile,
                    NumberFormat dtype, FootprintKind kind, Index stages) {
  Footprint most;
  const Index sequences = sequence_count(problem);
  const bool alike = problem.cu_seqlens_q.empty();
  for (Index s = 0; s < (alike ? std::min<Index>(sequences, 1) : sequences); ++s) {
    const Schedule schedule = schedule_for(problem, tile, sequence(problem, s));
    Footprint one = head_footprint(program, schedule, dtype, stages);
    if (s == 0 || required_bytes(one, kind) > required_bytes(most, kind)) most = std::move(one);
  }
  return most;
}

Bytes kernel_footprint(const Program& program, const Schedule& schedule, NumberFormat dtype,
                       Index stages) {
  BufferSizes sizes(program, schedule, Copies::closed);
  return KernelBuffers{program, sizes, dtype, stages}.largest_total(Charge::stages);
}

Bytes required_bytes(const Footprint& footprint, FootprintKind kind) {
  return kind == FootprintKind::uniform ? footprint.residency : footprint.kernel_total();
}

std::optional<std::string> infeasible_reason(Bytes required, Bytes available, FootprintKind kind) {
  if (required <= available) return std::nullopt;
  return "requires " + to_string(required) + " bytes of fast memory (" + std::string(name(kind)) +
         " footprint), " + to_string(available) + " available";
}

std::string_view name(FootprintKind kind) {
  return kind == FootprintKind::uniform ? "uniform" : "kernel";
}

}  // namespace flashbound
