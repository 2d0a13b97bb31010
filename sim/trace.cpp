#include "sim/trace.hpp"

#include "sim/moves.hpp"

#include <cstddef>

namespace flashbound {
namespace {

AccessRun run_of(const Segments& s, Index segment, Granularity granularity, Index element_bytes,
                 Index line_bytes) {
  if (granularity == Granularity::element) {
    return {.address = s.first + segment * s.stride,
            .units = s.bytes / element_bytes,
            .unit_bytes = element_bytes};
  }
  const Interval met = lines(s, segment, line_bytes);
  return {.address = met.begin * line_bytes, .units = met.size(), .unit_bytes = line_bytes};
}

}  // namespace

void trace_head(const Program& program, const Problem& problem, const Tile& tile,
                const Layout& layout, Index sequence, Index head, Granularity granularity,
                const RunSink& sink) {
  const Schedule schedule = schedule_for(problem, tile, flashbound::sequence(problem, sequence));
  MoveWalk walk{program, schedule};
  const auto emit = [&](AccessRun run, const Move& move) {
    run.tensor = move.tensor;
    run.write = move.write;
    sink(run);
  };
  const std::vector<bool> all(program.tensors.size(), true);
  walk.run(moves_of(program, all), [&](const Move& move) {
    const TensorLayout& tensor = layout.tensors[static_cast<std::size_t>(move.tensor)];
    const Place place{sequence, head, walk.block(move.split)};
    const Segments s = segments(tensor, place, walk.interval(move.rows), walk.interval(move.cols));
    if (granularity == Granularity::tile) {
      if (s.count > 0) emit({s.first, 1, s.count * s.bytes, 0, false}, move);
      return;
    }
    for (Index i = 0; i < s.count; ++i) {
      emit(run_of(s, i, granularity, tensor.element_bytes, layout.line_bytes), move);
    }
  });
}

void trace(const Program& program, const Problem& problem, const Tile& tile, const Layout& layout,
           Granularity granularity, const RunSink& sink) {
  for (Index s = 0; s < sequence_count(problem); ++s) {
    for (Index head = 0; head < problem.num_heads_q; ++head) {
      trace_head(program, problem, tile, layout, s, head, granularity, sink);
    }
  }
}

}  // namespace flashbound
