#include "core/program.hpp"

#include "core/errors.hpp"
#include "core/program_names.hpp"
#include "core/program_shapes.hpp"

#include <cstddef>
#include <set>
#include <utility>

namespace flashbound {
namespace {

// Walks a program in scope order and rejects the first statement that makes no sense.
class Validator {
 public:
  explicit Validator(const Program& program) : program_(program) {}

  void run() {
    check_tensors();
    for (const LoopDecl& loop : program_.loops) check_range_indices(loop.range);
    if (program_.body.empty()) fail("has no kernel");
    for (const Statement& kernel : program_.body) {
      if (kernel.op != Op::kernel) fail("has a statement outside any kernel");
      path_ = "kernel '" + kernel.label + "'";
      walk(kernel.body);
    }
    path_.clear();
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      const TensorDecl& tensor = program_.tensors[t];
      if (tensor.role == TensorRole::output && stored_.count(static_cast<int>(t)) == 0) {
        fail("never stores output '" + tensor.name + "'");
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError("program '" + program_.name + "'" + (path_.empty() ? "" : ", " + path_) +
                      ": " + what);
  }

  void check_tensors() const {
    std::set<std::string> names;
    for (const TensorDecl& tensor : program_.tensors) {
      if (!names.insert(tensor.name).second) fail("declares tensor '" + tensor.name + "' twice");
      const bool split = tensor.axes.size() == 3 && tensor.axes[0] == Axis::split;
      if (tensor.axes.size() != 2 && !split) {
        fail("tensor '" + tensor.name + "' must have axes (rows, cols) or (split, rows, cols)");
      }
    }
  }

  // Index checks only: whether the loops named are in scope is known where the range is used.
  void check_range_indices(const LoopRange& range) const {
    const int loops = static_cast<int>(program_.loops.size());
    for (const int index : {range.of, range.split}) {
      if (index < kNone || index >= loops) fail("a loop range names loop " + std::to_string(index));
    }
  }

  void walk(const std::vector<Statement>& body) {
    const std::set<int> outer_tiles = live_;
    const std::set<int> outer_own = std::exchange(own_, {});
    const std::string outer_path = path_;
    for (std::size_t at = 0; at < body.size(); ++at) {
      path_ = outer_path + ", statement " + std::to_string(at + 1) + " (" +
              std::string(name(body[at].op)) + ")";
      visit(body[at]);
    }
    path_ = outer_path;
    live_ = outer_tiles;  // tiles of this scope die with it
    own_ = outer_own;
  }

  void visit(const Statement& s) {
    switch (s.op) {
      case Op::kernel: fail("kernels do not nest");
      case Op::loop: return visit_loop(s);
      case Op::load: return visit_load(s);
      case Op::store: return visit_store(s);
      case Op::allocate: return define(s.result);
      case Op::release: return visit_release(s);
      default: return visit_computation(s);
    }
  }

  void visit_loop(const Statement& s) {
    if (s.loop < 0 || s.loop >= static_cast<int>(program_.loops.size())) fail("unknown loop");
    if (scope_.count(s.loop) != 0) fail("its loop is already running");
    const LoopRange& range = program_.loops[static_cast<std::size_t>(s.loop)].range;
    check_range(range);
    scope_.insert(s.loop);
    walk(s.body);
    scope_.erase(s.loop);
  }

  void check_range(const LoopRange& range) const {
    const auto seen_from = [&](RangeKind wanted_axis_kind) {
      if (range.of == kNone) fail("its range must name the loop it is seen from");
      require_in_scope(range.of);
      if (loop_axis(range.of) != axis_of(wanted_axis_kind))
        fail("its range is seen from a wrong axis");
    };
    switch (range.kind) {
      case RangeKind::visible_kv_blocks:
      case RangeKind::visible_key_panels: return seen_from(RangeKind::all_q_blocks);
      case RangeKind::visible_kv_blocks_split:
        seen_from(RangeKind::all_q_blocks);
        if (range.split == kNone) fail("its range must name the loop over splits");
        require_in_scope(range.split);
        if (loop_axis(range.split) != Axis::split) fail("its split is not a loop over splits");
        return;
      case RangeKind::visible_q_blocks:
      case RangeKind::starting_q_blocks:
      case RangeKind::continuing_q_blocks: return seen_from(RangeKind::all_kv_blocks);
      default:
        if (range.of != kNone || range.split != kNone) fail("its range depends on no loop");
    }
  }

  Axis loop_axis(int loop) const {
    return axis_of(program_.loops[static_cast<std::size_t>(loop)].range.kind);
  }

  void require_in_scope(int loop) const {
    if (scope_.count(loop) == 0) fail("loop " + std::to_string(loop) + " is out of scope");
  }

  void check_extent(const Extent& extent) const {
    if (extent.loop == kNone) return;
    require_in_scope(extent.loop);
    if (loop_axis(extent.loop) != extent.axis) fail("an extent names a loop over another axis");
  }

  void define(const Operand& operand) {
    const TileDecl& tile = declaration(operand);
    if (operand.copy != kNone) fail("copies of a tile are defined together");
    if (!defined_.insert(operand.tile).second) fail("tile '" + tile.name + "' is defined twice");
    check_extent(tile.rows);
    check_extent(tile.cols);
    if (tile.copied) check_range(tile.copies);
    live_.insert(operand.tile);
    own_.insert(operand.tile);
  }

  const TileDecl& declaration(const Operand& operand) const {
    if (operand.tile < 0 || operand.tile >= static_cast<int>(program_.tiles.size())) {
      fail("an operand is missing or names no tile");
    }
    return program_.tiles[static_cast<std::size_t>(operand.tile)];
  }

  const TileDecl& use(const Operand& operand) const {
    const TileDecl& tile = declaration(operand);
    if (live_.count(operand.tile) == 0) fail("tile '" + tile.name + "' is undefined or released");
    if (tile.copied != (operand.copy != kNone)) {
      fail("tile '" + tile.name + "' " + (tile.copied ? "needs" : "has no") + " copy index");
    }
    if (tile.copied) {
      require_in_scope(operand.copy);
      if (!(program_.loops[static_cast<std::size_t>(operand.copy)].range == tile.copies)) {
        fail("the copy index of '" + tile.name + "' runs over another range");
      }
    }
    return tile;
  }

  const TensorDecl& check_region(const Statement& s, const TileDecl& tile) const {
    if (s.tensor < 0 || s.tensor >= static_cast<int>(program_.tensors.size())) {
      fail("unknown tensor");
    }
    const TensorDecl& tensor = program_.tensors[static_cast<std::size_t>(s.tensor)];
    bool fits = s.region.size() == tensor.axes.size();
    for (std::size_t axis = 0; fits && axis < s.region.size(); ++axis) {
      check_extent(s.region[axis]);
      fits = s.region[axis].axis == tensor.axes[axis];
    }
    if (!fits) fail("the region does not fit the axes of tensor '" + tensor.name + "'");
    const std::size_t n = s.region.size();
    if (!(s.region[n - 2] == tile.rows && s.region[n - 1] == tile.cols) || tile.copied) {
      fail("the region differs from the shape of tile '" + tile.name + "'");
    }
    if (n == 3 && s.region[0].loop == kNone) fail("a region must select one split");
    return tensor;
  }

  void visit_load(const Statement& s) {
    define(s.result);
    const TensorDecl& tensor = check_region(s, declaration(s.result));
    if (tensor.role != TensorRole::input && tensor.initial == Content::undefined &&
        stored_.count(s.tensor) == 0) {
      fail("loads '" + tensor.name + "', which nothing has stored");
    }
  }

  void visit_store(const Statement& s) {
    const TensorDecl& tensor = check_region(s, use(s.a));
    if (tensor.role == TensorRole::input) fail("stores into input '" + tensor.name + "'");
    stored_.insert(s.tensor);
  }

  void visit_release(const Statement& s) {
    const TileDecl& tile = declaration(s.a);
    if (live_.erase(s.a.tile) == 0) fail("tile '" + tile.name + "' is undefined or released");
    if (own_.count(s.a.tile) == 0) fail("tile '" + tile.name + "' belongs to an outer scope");
  }

  const TileDecl* use_if(Takes takes, const Operand& operand) const {
    if (takes == Takes::nothing) return nullptr;
    return takes == Takes::always || operand.present() ? &use(operand) : nullptr;
  }

  void visit_computation(const Statement& s) const {
    const TileDecl& result = use(s.result);
    const TileDecl* a = use_if(takes_a(s.op), s.a);
    const TileDecl* b = use_if(takes_b(s.op), s.b);
    const std::string wrong = misfit(s.op, result, a, b);
    if (!wrong.empty()) fail(wrong);
  }

  const Program& program_;
  std::string path_;
  std::set<int> scope_;    // running loops
  std::set<int> live_;     // resident tiles
  std::set<int> own_;      // of those, the ones defined in the scope being walked
  std::set<int> defined_;  // tiles defined so far, anywhere
  std::set<int> stored_;   // tensors stored so far
};

}  // namespace

Axis axis_of(RangeKind kind) {
  switch (kind) {
    case RangeKind::all_q_blocks:
    case RangeKind::visible_q_blocks:
    case RangeKind::starting_q_blocks:
    case RangeKind::continuing_q_blocks:
    case RangeKind::q_blocks_without_keys: return Axis::query;
    case RangeKind::all_kv_blocks:
    case RangeKind::visible_kv_blocks:
    case RangeKind::visible_kv_blocks_split:
    case RangeKind::visible_key_panels: return Axis::key;
    case RangeKind::head_dim_panels: return Axis::head_dim;
    case RangeKind::head_dim_v_blocks: return Axis::head_dim_v;
    case RangeKind::splits: return Axis::split;
  }
  return Axis::one;
}

void validate(const Program& program) { Validator(program).run(); }

}  // namespace flashbound
