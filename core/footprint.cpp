#include "core/footprint.hpp"

#include "core/count.hpp"
#include "core/program_ranges.hpp"

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

// Sizes of buffers, which do not depend on which block is being worked on.
class BufferSizes {
 public:
  BufferSizes(const Program& program, const Schedule& schedule)
      : program_(program), schedule_(schedule), environment_(program.loops.size(), 0) {}

  // Largest size of a block: of the first one, or, padded, what the tile parameter says.
  Index extent(const Extent& extent, bool padded) const {
    if (padded && extent.loop != kNone) {
      const LoopRange& range = program_.loops[static_cast<std::size_t>(extent.loop)].range;
      return block_size(range.kind);
    }
    return interval_of(extent, schedule_, program_, environment_).size();
  }

  // Most copies that any block of the enclosing loop asks for.
  Index copies(const TileDecl& tile) {
    if (!tile.copied) return 1;
    Index most = 0;
    const auto loop = static_cast<std::size_t>(std::max(tile.copies.of, 0));
    LoopBlocks outer = loop_blocks(program_.loops[loop].range, schedule_, environment_);
    const Mask& mask = schedule_.mask;
    const bool masked = mask.window_left >= 0 || mask.window_right >= 0 || mask.blocks.present();
    if (!masked) outer.run.end = std::min(outer.run.end, outer.run.begin + 1);  // all are alike
    for_each_block(outer, [&](Index block) {
      environment_[loop] = block;
      most = std::max(most, loop_blocks(tile.copies, schedule_, environment_).count());
    });
    environment_[loop] = 0;
    return most;
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

  const Program& program_;
  const Schedule& schedule_;
  Environment environment_;
};

struct KernelBuffers {
  const Statement& kernel;
  const Program& program;
  BufferSizes& sizes;
  NumberFormat dtype;
  Index stages;

  std::vector<FootprintBuffer> list(Charge charge) const {
    std::vector<FootprintBuffer> buffers;
    collect(kernel.body, 0, charge, buffers);
    return buffers;
  }

 private:
  void collect(const std::vector<Statement>& body, int depth, Charge charge,
               std::vector<FootprintBuffer>& buffers) const {
    for (const Statement& s : body) {
      if (s.op == Op::loop) collect(s.body, depth + 1, charge, buffers);
      if (s.op != Op::load && s.op != Op::allocate) continue;
      const TileDecl& tile = program.tiles[static_cast<std::size_t>(s.result.tile)];
      const bool padded = charge >= Charge::full_blocks;
      const bool in_flight = s.op == Op::load && depth > 1 && tile.role == TileRole::operand;
      FootprintBuffer buffer{kernel.label, tile.name, sizes.extent(tile.rows, padded),
                             sizes.extent(tile.cols, padded), sizes.copies(tile)};
      if (charge >= Charge::stages && in_flight) buffer.copies *= stages;
      buffer.element_bytes =
          charge >= Charge::role_widths ? role_bytes(tile.role, dtype) : byte_size(dtype);
      const Elements elements(checked_mul(checked_mul(buffer.rows, buffer.cols), buffer.copies));
      buffer.bytes = bytes_of(elements, buffer.element_bytes);
      buffers.push_back(buffer);
    }
  }
};

Bytes total(const std::vector<FootprintBuffer>& buffers) {
  Bytes sum;
  for (const FootprintBuffer& buffer : buffers) sum += buffer.bytes;
  return sum;
}

// Buffers of the kernel that needs most.
std::vector<FootprintBuffer> largest_buffers(const Program& program, BufferSizes& sizes,
                                             NumberFormat dtype, Index stages, Charge charge) {
  std::vector<FootprintBuffer> most;
  for (const Statement& kernel : program.body) {
    auto buffers = KernelBuffers{kernel, program, sizes, dtype, stages}.list(charge);
    if (most.empty() || total(buffers) > total(most)) most = std::move(buffers);
  }
  return most;
}

Footprint head_footprint(const Program& program, const Schedule& schedule, NumberFormat dtype,
                         Index stages) {
  BufferSizes sizes(program, schedule);
  const auto largest = [&](Charge charge) {
    return largest_buffers(program, sizes, dtype, stages, charge);
  };
  Footprint result;
  const Elements peak = count_head(program, schedule, dtype).sram_peak;
  result.residency = bytes_of(peak, byte_size(dtype));
  const Bytes unshared = total(largest(Charge::unshared));
  const Bytes padded = total(largest(Charge::full_blocks));
  const Bytes widened = total(largest(Charge::role_widths));
  result.buffers = largest(Charge::stages);
  result.unshared_buffers = unshared - result.residency;
  result.ragged_padding = padded - unshared;
  result.wider_elements = widened - padded;
  result.pipeline_stages = total(result.buffers) - widened;
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
  BufferSizes sizes(program, schedule);
  return total(largest_buffers(program, sizes, dtype, stages, Charge::stages));
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
