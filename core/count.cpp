#include "core/count.hpp"

#include "core/program_ranges.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace flashbound {
namespace {

// For each loop: whether anything in its body asks for its index rather than its block's size.
void mark_index_users(const Program& program, const std::vector<Statement>& body,
                      std::vector<bool>& index_matters) {
  const auto mark = [&](const LoopRange& range) {
    for (const int loop : {range.of, range.split}) {
      if (loop != kNone) index_matters[static_cast<std::size_t>(loop)] = true;
    }
  };
  for (const Statement& s : body) {
    if (s.op == Op::loop) mark(program.loops[static_cast<std::size_t>(s.loop)].range);
    if (s.op == Op::allocate) {
      const TileDecl& tile = program.tiles[static_cast<std::size_t>(s.result.tile)];
      if (tile.copied) mark(tile.copies);
    }
    mark_index_users(program, s.body, index_matters);
  }
}

class CountMachine {
 public:
  CountMachine(const Program& program, const Schedule& schedule, NumberFormat dtype, LoopWalk walk)
      : program_(program),
        schedule_(schedule),
        walk_(walk),
        environment_(program.loops.size(), 0),
        index_matters_(program.loops.size(), false),
        tile_elements_(program.tiles.size()) {
    mark_index_users(program, program.body, index_matters_);
    for (const TensorDecl& tensor : program.tensors) {
      count_.tensors.push_back({tensor.name, element_bytes(tensor.width, dtype), {}, {}});
    }
  }

  IoCount run() {
    visit_scope(program_.body);
    return count_;
  }

 private:
  void visit_scope(const std::vector<Statement>& body) {
    const Elements resident = resident_;
    for (const Statement& statement : body) visit(statement);
    resident_ = resident;  // tiles of a scope leave with it
  }

  void visit(const Statement& s) {
    switch (s.op) {
      case Op::kernel: return visit_scope(s.body);
      case Op::loop: return visit_loop(s);
      case Op::load:
        make_resident(s.result);
        traffic(s).read += repeat_ * elements(s.result);
        return;
      case Op::store: traffic(s).written += repeat_ * elements(s.a); return;
      case Op::allocate: return make_resident(s.result);
      case Op::release: resident_ -= tile_elements_[index(s.a)]; return;
      case Op::multiply_transposed:
      case Op::multiply_left_transposed:
      case Op::multiply: return multiply(s);
      case Op::row_max_update:
        if (s.b.present()) {
          count_.exponentials += repeat_ * Events(rows(s.result));
          count_.rescales_at_most += repeat_ * Events(rows(s.result));
        }
        return;
      case Op::exponentiate:
        count_.exponentials += repeat_ * Events(elements(s.result).value());
        return;
      case Op::logits:
      case Op::rescale:
      case Op::row_sum_update:
      case Op::scale_add:
      case Op::divide:
      case Op::lse:
      case Op::row_dot:
      case Op::softmax_gradient:
      case Op::logits_gradient: return;  // neither traffic nor anything counted
    }
  }

  void visit_loop(const Statement& s) {
    const auto loop = static_cast<std::size_t>(s.loop);
    const LoopBlocks blocks = loop_blocks(program_.loops[loop].range, schedule_, environment_);
    if (walk_ == LoopWalk::every_block || index_matters_[loop]) {
      for_each_block(blocks, [&](Index block) { visit_block(s, loop, block, 1); });
      return;
    }
    // The body sees the size of a block only: whole ones are alike, and the last may be ragged.
    Index whole = blocks.count();
    const Index last = blocks.partition.count() - 1;
    if (blocks.partition.ragged() != 0 && holds(blocks, last)) {
      --whole;
      visit_block(s, loop, last, 1);
    }
    // Block 0 stands for them all: an extent's size is all that is read from it.
    if (whole > 0) visit_block(s, loop, 0, whole);
  }

  static bool holds(const LoopBlocks& blocks, Index wanted) {
    if (!blocks.filter) return wanted >= blocks.run.begin && wanted < blocks.run.end;
    for (const Block block : *blocks.filter) {
      if (block.index == wanted) return true;
    }
    return false;
  }

  void visit_block(const Statement& s, std::size_t loop, Index block, Index times) {
    const Int128 outer = repeat_;
    environment_[loop] = block;
    repeat_ = checked_mul(outer, times);
    visit_scope(s.body);
    repeat_ = outer;
  }

  void make_resident(const Operand& operand) {
    const TileDecl& tile = program_.tiles[index(operand)];
    Elements size = elements(operand);
    if (tile.copied) size = loop_blocks(tile.copies, schedule_, environment_).count() * size;
    tile_elements_[index(operand)] = size;
    resident_ += size;
    count_.sram_peak = std::max(count_.sram_peak, resident_);
  }

  void multiply(const Statement& s) {
    const TileDecl& a = program_.tiles[index(s.a)];
    const Int128 contraction = size(s.op == Op::multiply_left_transposed ? a.rows : a.cols);
    count_.flops += repeat_ * Flops(checked_mul(2 * contraction, elements(s.result).value()));
  }

  static std::size_t index(const Operand& operand) {
    return static_cast<std::size_t>(operand.tile);
  }
  Index size(const Extent& extent) const {
    return interval_of(extent, schedule_, program_, environment_).size();
  }
  Index rows(const Operand& operand) const { return size(program_.tiles[index(operand)].rows); }
  // Of one copy, where the tile has copies.
  Elements elements(const Operand& operand) const {
    const TileDecl& tile = program_.tiles[index(operand)];
    return Elements(checked_mul(size(tile.rows), size(tile.cols)));
  }
  TensorTraffic& traffic(const Statement& s) {
    return count_.tensors[static_cast<std::size_t>(s.tensor)];
  }

  const Program& program_;
  const Schedule& schedule_;
  LoopWalk walk_;
  Environment environment_;
  std::vector<bool> index_matters_;
  std::vector<Elements> tile_elements_;  // of resident tiles, all copies together
  Elements resident_;
  Int128 repeat_ = 1;  // how often the statement being visited runs
  IoCount count_;
};

void add_scaled(IoCount& total, Int128 times, const IoCount& one) {
  for (std::size_t t = 0; t < total.tensors.size(); ++t) {
    total.tensors[t].read += times * one.tensors[t].read;
    total.tensors[t].written += times * one.tensors[t].written;
  }
  total.sram_peak = std::max(total.sram_peak, one.sram_peak);
  total.flops += times * one.flops;
  total.exponentials += times * one.exponentials;
  total.rescales_at_most += times * one.rescales_at_most;
}

}  // namespace

IoCount count_head(const Program& program, const Schedule& schedule, NumberFormat dtype,
                   LoopWalk walk) {
  return CountMachine(program, schedule, dtype, walk).run();
}

IoCount count(const Program& program, const Problem& problem, const Tile& tile, NumberFormat dtype,
              LoopWalk walk) {
  IoCount total;
  for (const TensorDecl& tensor : program.tensors) {
    total.tensors.push_back({tensor.name, element_bytes(tensor.width, dtype), {}, {}});
  }
  // Without packing all sequences of a batch are alike.
  const bool alike = problem.cu_seqlens_q.empty();
  const Index sequences = sequence_count(problem);
  for (Index s = 0; s < (alike ? std::min<Index>(sequences, 1) : sequences); ++s) {
    const Schedule schedule = schedule_for(problem, tile, sequence(problem, s));
    const Index times = problem.num_heads_q * (alike ? sequences : 1);
    add_scaled(total, times, count_head(program, schedule, dtype, walk));
  }
  return total;
}

}  // namespace flashbound
