#include "sim/program_trace.hpp"

#include "core/errors.hpp"
#include "sim/moves.hpp"
#include "sim/steady_loop.hpp"
#include "sim/tile_grid.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace flashbound {
namespace {

// By tensor: whether the trace holds it.
std::vector<bool> kept_tensors(const Program& program, const std::vector<std::string>& without) {
  std::vector<bool> kept(program.tensors.size(), true);
  for (const std::string& name : without) {
    const auto found = std::find_if(program.tensors.begin(), program.tensors.end(),
                                    [&](const TensorDecl& tensor) { return tensor.name == name; });
    if (found == program.tensors.end()) reject("without", name, "a tensor of " + program.name);
    kept[static_cast<std::size_t>(found - program.tensors.begin())] = false;
  }
  return kept;
}

void require_head(const Problem& problem, const std::optional<OneHead>& only) {
  if (!only) return;
  const auto require_below = [](const char* field, Index value, Index count) {
    if (value < 0 || value >= count) {
      reject(field, std::to_string(value), "in [0, " + std::to_string(count - 1) + "]");
    }
  };
  require_below("only.sequence", only->sequence, sequence_count(problem));
  require_below("only.head", only->head, problem.num_heads_q);
}

// Calls visit(schedule, sequence, heads) for each sequence that is traced, in order.
template <class Visit>
void for_each_sequence(const Problem& problem, const Tile& tile, const TraceOptions& options,
                       const Visit& visit) {
  const Interval heads = options.only ? Interval{options.only->head, options.only->head + 1}
                                      : Interval{0, problem.num_heads_q};
  const Interval sequences = options.only
                                 ? Interval{options.only->sequence, options.only->sequence + 1}
                                 : Interval{0, sequence_count(problem)};
  for (Index s = sequences.begin; s < sequences.end; ++s) {
    visit(schedule_for(problem, tile, sequence(problem, s)), s, heads);
  }
}

void require_accesses(Int128 accesses) {
  if (accesses > kTraceAccessesMax) {
    reject("trace_accesses", "more than " + std::to_string(kTraceAccessesMax),
           "at most " + std::to_string(kTraceAccessesMax));
  }
}

// Calls visit(move, segments) for each move.
template <class Visit>
void walk_segments(const Program& program, const std::vector<MoveNode>& moves,
                   const Problem& problem, const Tile& tile, const Layout& layout,
                   const TraceOptions& options, const Visit& visit) {
  for_each_sequence(
      problem, tile, options, [&](const Schedule& schedule, Index sequence, Interval heads) {
        MoveWalk walk{program, schedule};
        for (Index head = heads.begin; head < heads.end; ++head) {
          walk.run(moves, [&](const Move& move) {
            const TensorLayout& tensor = layout.tensors[static_cast<std::size_t>(move.tensor)];
            const Place place{sequence, head, walk.block(move.split)};
            visit(move,
                  segments(tensor, place, walk.interval(move.rows), walk.interval(move.cols)));
          });
        }
      });
}

// Segments that are whole lines apart meet their lines alike.
bool alike(const Segments& s, Index line_bytes) { return s.stride % line_bytes == 0; }

// Lines met, or some number above kTraceAccessesMax where they are more.
Index count_lines(const Segments& s, Index line_bytes) {
  if (s.count == 0) return 0;
  if (alike(s, line_bytes)) return s.count * lines(s, 0, line_bytes).size();
  if (s.count > kTraceAccessesMax) return s.count;
  Index count = 0;
  for (Index i = 0; i < s.count; ++i) count += lines(s, i, line_bytes).size();
  return count;
}

// Calls visit(lines) for each segment.
template <class Visit>
void for_each_run(const Segments& s, Index line_bytes, const Visit& visit) {
  if (s.count > 0 && alike(s, line_bytes)) {
    Interval met = lines(s, 0, line_bytes);
    const Index step = s.stride / line_bytes;
    for (Index i = 0; i < s.count; ++i, met.begin += step, met.end += step) visit(met);
  } else {
    for (Index i = 0; i < s.count; ++i) visit(lines(s, i, line_bytes));
  }
}

// A guard that takes no walk: nearly every move makes an access or more.
void require_moves(const Program& program, const std::vector<MoveNode>& moves,
                   const Problem& problem, const Tile& tile, const TraceOptions& options) {
  Int128 total = 0;
  for_each_sequence(problem, tile, options,
                    [&](const Schedule& schedule, Index /*sequence*/, Interval heads) {
                      MoveWalk walk{program, schedule};
                      total += Int128{heads.size()} * count_moves(walk, moves, kTraceAccessesMax);
                      require_accesses(total);
                    });
}

// A trace without accesses whose tensors and units are those that `kept` marks.
struct KeptUnits {
  AccessTrace trace{};
  std::vector<std::uint8_t> index{};  // by tensor of the program: its index in the trace

  KeptUnits(const Program& program, const std::vector<bool>& kept, Index line_bytes) {
    trace.line_bytes = line_bytes;
    for (std::size_t t = 0; t < kept.size(); ++t) {
      index.push_back(static_cast<std::uint8_t>(trace.tensors.size()));
      if (kept[t]) trace.tensors.push_back(program.tensors[t].name);
    }
    constexpr std::size_t kMost = std::numeric_limits<std::uint8_t>::max();
    if (trace.tensors.size() > kMost) {
      reject("tensors", std::to_string(trace.tensors.size()), "at most " + std::to_string(kMost));
    }
  }
  void append(std::size_t tensor, Index units) {
    trace.unit_tensor.resize(trace.unit_tensor.size() + static_cast<std::size_t>(units),
                             index[tensor]);
  }
};

// How the lines of the tensors that a trace holds are numbered, by tensor.
struct LineNumbers {
  std::vector<Index> count{};    // lines of the tensor in the trace
  std::vector<Index> skipped{};  // lines of the address space left out before it
};

LineNumbers number_lines(const Layout& layout, const std::vector<bool>& kept) {
  LineNumbers numbers;
  Index units = 0;
  for (std::size_t t = 0; t < kept.size(); ++t) {
    const Index begin = layout.tensors[t].begin;
    const Index end = t + 1 < kept.size() ? layout.tensors[t + 1].begin : layout.bytes;
    numbers.skipped.push_back(begin / layout.line_bytes - units);
    numbers.count.push_back(kept[t] ? (end - begin) / layout.line_bytes : 0);
    units += numbers.count.back();
  }
  if (units > kTraceUnitsMax) {
    reject("trace_lines", std::to_string(units), "at most " + std::to_string(kTraceUnitsMax));
  }
  return numbers;
}

// Appends accesses to a trace that has room for them.
struct TileWriter {
  const TileGrid& grid;
  const Layout& layout;
  AccessTrace& trace;

  void head(const std::vector<MoveNode>& moves, MoveWalk& walk, Index sequence, Index head,
            const std::optional<SteadyLoop>& steady) {
    const auto write = [&](const Move& move) { this->write(move, walk, sequence, head); };
    if (!steady) return walk.run(moves, write);
    const auto node = moves.begin() + static_cast<std::ptrdiff_t>(steady->node);
    walk.run({moves.begin(), node}, write);
    walk.run_block(*node, steady->blocks.begin, write);
    const std::size_t begin = trace.accesses.size();
    walk.run_block(*node, steady->blocks.begin + 1, write);
    trace.repeats.push_back({begin, trace.accesses.size(), steady->times});
    if (steady->ragged) walk.run_block(*node, steady->blocks.end - 1, write);
  }

 private:
  void write(const Move& move, const MoveWalk& walk, Index sequence, Index head) {
    const auto t = static_cast<std::size_t>(move.tensor);
    const TensorGrid& tensor = grid.tensors[t];
    if (tensor.matrix(sequence).tiles() == 0) return;
    const auto unit = static_cast<std::uint32_t>(
        tensor.tile(walk.block(move.split), sequence, head / layout.tensors[t].heads_sharing,
                    walk.block(move.rows.loop), walk.block(move.cols.loop)));
    trace.accesses.push_back(move.write ? AccessTrace::write(unit) : AccessTrace::read(unit));
  }
};

Index count_tile_accesses(MoveWalk& walk, const std::vector<MoveNode>& moves,
                          const std::optional<SteadyLoop>& steady) {
  if (!steady) return count_moves(walk, moves, kTraceAccessesMax);
  const auto node = moves.begin() + static_cast<std::ptrdiff_t>(steady->node);
  const Index once = count_moves(walk, node->body, kTraceAccessesMax);
  return count_moves(walk, {moves.begin(), node}, kTraceAccessesMax) +
         (steady->ragged ? 3 : 2) * once;
}

std::vector<bool> shared_tensors(const Layout& layout) {
  std::vector<bool> shared;
  for (const TensorLayout& tensor : layout.tensors) shared.push_back(tensor.heads_sharing > 1);
  return shared;
}

}  // namespace

AccessTrace line_trace(const Program& program, const Problem& problem, const Tile& tile,
                       const Layout& layout, const TraceOptions& options) {
  const std::vector<bool> kept = kept_tensors(program, options.without);
  require_head(problem, options.only);
  const std::vector<MoveNode> moves = moves_of(program, kept);
  require_moves(program, moves, problem, tile, options);

  const LineNumbers numbers = number_lines(layout, kept);
  Index accesses = 0;
  walk_segments(program, moves, problem, tile, layout, options,
                [&](const Move& /*move*/, const Segments& s) {
                  accesses += count_lines(s, layout.line_bytes);
                  require_accesses(accesses);
                });

  KeptUnits result(program, kept, layout.line_bytes);
  for (std::size_t t = 0; t < kept.size(); ++t) result.append(t, numbers.count[t]);
  result.trace.accesses.resize(static_cast<std::size_t>(accesses));
  std::uint32_t* next = result.trace.accesses.data();
  walk_segments(program, moves, problem, tile, layout, options,
                [&](const Move& move, const Segments& s) {
                  const Index skip = numbers.skipped[static_cast<std::size_t>(move.tensor)];
                  const std::uint32_t write = move.write ? 1 : 0;
                  for_each_run(s, layout.line_bytes, [&](Interval met) {
                    const auto first = static_cast<std::uint32_t>(met.begin - skip);
                    const auto count = static_cast<std::uint32_t>(met.size());
                    for (std::uint32_t i = 0; i < count; ++i) next[i] = 2 * (first + i) + write;
                    next += count;
                  });
                });
  return std::move(result.trace);
}

TileTrace tile_trace(const Program& program, const Problem& problem, const Tile& tile,
                     const Layout& layout, const TraceOptions& options) {
  const std::vector<bool> kept = kept_tensors(program, options.without);
  require_head(problem, options.only);
  const std::vector<MoveNode> moves = moves_of(program, kept);
  const TileGrid grid = tile_grid(program, moves, problem, tile, layout);
  if (!grid.why_not.empty()) return {.why_not = grid.why_not};

  const std::vector<bool> shared = shared_tensors(layout);
  const auto steady_of = [&](const Schedule& schedule) {
    return options.fast_forward ? steady_loop(program, moves, schedule, shared) : std::nullopt;
  };
  Int128 accesses = 0;
  for_each_sequence(problem, tile, options,
                    [&](const Schedule& schedule, Index /*sequence*/, Interval heads) {
                      MoveWalk walk{program, schedule};
                      const std::optional<SteadyLoop> steady = steady_of(schedule);
                      accesses += Int128{heads.size()} * count_tile_accesses(walk, moves, steady);
                      require_accesses(accesses);
                    });

  KeptUnits result(program, kept, layout.line_bytes);
  for (std::size_t t = 0; t < kept.size(); ++t) result.append(t, grid.tensors[t].tiles);
  result.trace.unit_lines = tile_lines(grid, problem, layout);
  result.trace.accesses.reserve(static_cast<std::size_t>(accesses));
  TileWriter writer{grid, layout, result.trace};
  for_each_sequence(problem, tile, options,
                    [&](const Schedule& schedule, Index sequence, Interval heads) {
                      MoveWalk walk{program, schedule};
                      const std::optional<SteadyLoop> steady = steady_of(schedule);
                      for (Index head = heads.begin; head < heads.end; ++head) {
                        writer.head(moves, walk, sequence, head, steady);
                      }
                    });
  return {.trace = std::move(result.trace)};
}

}  // namespace flashbound
