#include "experiments/cachegrind/tiled_model.hpp"

#include "core/errors.hpp"
#include "core/programs.hpp"
#include "core/record.hpp"
#include "experiments/cachegrind/line_numbers.hpp"
#include "sim/memory_levels.hpp"

#include <array>
#include <map>
#include <string_view>

namespace flashbound {
namespace {

constexpr std::uint32_t kLinesMax = std::uint32_t{1} << 24;
constexpr std::uint64_t kFloatBytes = 4;

// The program's tiles that are arrays of scratch; the factor of a rescale stays in a register.
struct Scratch {
  std::string_view tile;
  const char* array;
};
constexpr std::array<Scratch, 7> kScratch{{{"q", "q_i"},
                                           {"k", "k_j"},
                                           {"v", "v_j"},
                                           {"scores", "s"},
                                           {"acc_o", "acc_o"},
                                           {"row_max", "row_max"},
                                           {"row_sum", "row_sum"}}};

const char* scratch_of(const std::string& tile) {
  for (const Scratch& scratch : kScratch) {
    if (scratch.tile == tile) return scratch.array;
  }
  return nullptr;
}

// Writes the accesses of a run down as reads of lines.
class Tracer {
 public:
  Tracer(const TiledRun& run, const std::vector<CacheLevel>& levels)
      : run_(run), numbers_(levels, kLinesMax) {
    trace_.line_bytes = levels[0].line_bytes;
    for (const NamedArray& array : run.arrays) trace_.tensors.push_back(array.name);
  }

  // Element `element` of an array.
  void touch(const std::string& array, Index element) {
    const std::size_t index = index_of(array);
    const std::uint64_t offset = static_cast<std::uint64_t>(element) * kFloatBytes;
    const std::uint32_t line = numbers_.of(run_.arrays[index].address + offset);
    if (line >= trace_.unit_tensor.size()) trace_.unit_tensor.resize(line + 1);
    trace_.unit_tensor[line] = static_cast<std::uint8_t>(index);
    trace_.accesses.push_back(AccessTrace::read(line));
  }

  // The first `count` elements of an array, each line once.
  void sweep(const std::string& array, Index count) {
    const Index step = trace_.line_bytes / Index{kFloatBytes};
    for (Index e = 0; e < count; e += step) touch(array, e);
  }

  const AccessTrace& trace() const { return trace_; }

 private:
  std::size_t index_of(const std::string& array) const {
    for (std::size_t a = 0; a < run_.arrays.size(); ++a) {
      if (run_.arrays[a].name == array) return a;
    }
    reject("arrays", "without " + array, "those of tiled_program");
  }

  const TiledRun& run_;
  LineNumbers numbers_;
  AccessTrace trace_;
};

// Tiles lie packed from the start of their arrays, tensors in rows of all their columns.
class Attention {
 public:
  Attention(const TiledRun& run, Tracer& tracer) : run_(run), tracer_(tracer) {}

  void trace() {
    Problem problem;
    problem.seqlen_q = run_.seqlen_q;
    problem.seqlen_kv = run_.seqlen_kv;
    problem.head_dim = problem.head_dim_v = run_.head_dim;
    validate(problem);
    const Tile tile{.block_q = run_.block_q, .block_kv = run_.block_kv};
    validate(tile);
    program_ = flash2_program();
    record(program_, schedule_for(problem, tile, sequence(problem, 0)), NumberFormat::fp32,
           [&](const Event& event) { step(event); });
  }

 private:
  void step(const Event& event) {
    if (event.statement->op == Op::kernel || event.statement->op == Op::release) return;
    const Index count = event.rows.size() * event.cols.size();
    if (event.tensor != nullptr) {
      move(event, count);
      return;
    }
    sizes_[event.tile->name] = count;
    for (const Operand& operand :
         {event.statement->a, event.statement->b, event.statement->result}) {
      if (operand.present()) sweep(program_.tiles[static_cast<std::size_t>(operand.tile)].name);
    }
  }

  // lse is computed in registers from row_max and row_sum while it is stored.
  void move(const Event& event, Index count) {
    const Index first = event.rows.begin * event.cols.size();
    const bool load = event.statement->op == Op::load;
    if (load) sizes_[event.tile->name] = count;
    const char* scratch = scratch_of(event.tile->name);
    for (Index e = 0; e < count; ++e) {
      if (load) tracer_.touch(event.tensor->name, first + e);
      if (scratch != nullptr) tracer_.touch(scratch, e);
      if (!load) tracer_.touch(event.tensor->name, first + e);
    }
  }

  void sweep(const std::string& tile) {
    if (const char* scratch = scratch_of(tile)) tracer_.sweep(scratch, sizes_[tile]);
  }

  const TiledRun& run_;
  Tracer& tracer_;
  Program program_{};
  std::map<std::string, Index> sizes_{};  // elements of each tile now
};

ArrayMisses last_misses(const std::vector<CacheLevel>& levels, const AccessTrace& trace) {
  const std::vector<LevelResult> results = simulate_levels(levels, trace, Flush::never);
  ArrayMisses misses;
  for (const LevelTraffic& t : results.back().tensors) misses[t.tensor] = t.read_misses;
  return misses;
}

}  // namespace

ArrayMisses modelled_misses(const TiledRun& run, const CacheLevel& last) {
  const std::vector<CacheLevel> levels{run.data, last};
  Tracer tracer(run, levels);
  tracer.sweep("q", run.seqlen_q * run.head_dim);
  tracer.sweep("k", run.seqlen_kv * run.head_dim);
  tracer.sweep("v", run.seqlen_kv * run.head_dim);
  const ArrayMisses before = last_misses(levels, tracer.trace());
  Attention(run, tracer).trace();
  // The caches see the same beginning, so that the difference is what attention adds.
  ArrayMisses misses = last_misses(levels, tracer.trace());
  for (const auto& array : before) misses[array.first] -= array.second;
  return misses;
}

}  // namespace flashbound
