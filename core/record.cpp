#include "core/record.hpp"

#include "core/io_count.hpp"
#include "core/program_names.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <vector>

namespace flashbound {
namespace {

class RecordMachine {
 public:
  RecordMachine(const Program& program, const Schedule& schedule, NumberFormat dtype,
                const std::function<void(const Event&)>& sink)
      : program_(program),
        schedule_(schedule),
        dtype_(dtype),
        sink_(sink),
        environment_(program.loops.size(), kNone),
        held_(program.tiles.size()) {}

  void run() { visit_scope(program_.body); }

 private:
  void visit_scope(const std::vector<Statement>& body) {
    const std::size_t outer = stack_.size();
    for (const Statement& statement : body) visit(statement);
    while (stack_.size() > outer) {
      const int tile = stack_.back();
      stack_.pop_back();
      if (held_[static_cast<std::size_t>(tile)] == Elements{}) continue;  // released before
      Statement release{.op = Op::release, .a = {tile, kNone}};
      visit_release(release);
    }
  }

  void visit(const Statement& s) {
    switch (s.op) {
      case Op::kernel: emit({.statement = &s}); return visit_scope(s.body);
      case Op::loop: return visit_loop(s);
      case Op::load: make_resident(s.result); return emit_move(s, s.result);
      case Op::store: return emit_move(s, s.a);
      case Op::allocate: make_resident(s.result); return emit_on(s, s.result);
      case Op::release: return visit_release(s);
      default: return emit_on(s, s.result);
    }
  }

  void visit_loop(const Statement& s) {
    const auto loop = static_cast<std::size_t>(s.loop);
    for_each_block(loop_blocks(program_.loops[loop].range, schedule_, environment_),
                   [&](Index block) {
                     environment_[loop] = block;
                     visit_scope(s.body);
                   });
    environment_[loop] = kNone;
  }

  void visit_release(const Statement& s) {
    Elements& held = held_[static_cast<std::size_t>(s.a.tile)];
    resident_ -= held;
    held = Elements{};
    emit_on(s, s.a);
  }

  void make_resident(const Operand& operand) {
    const TileDecl& tile = declared(operand);
    const Index copies =
        tile.copied ? loop_blocks(tile.copies, schedule_, environment_).count() : 1;
    Elements& held = held_[static_cast<std::size_t>(operand.tile)];
    held = copies * elements(tile);
    resident_ += held;
    stack_.push_back(operand.tile);
  }

  void emit_on(const Statement& s, const Operand& operand) {
    const TileDecl& tile = declared(operand);
    emit({.statement = &s, .tile = &tile, .rows = span(tile.rows), .cols = span(tile.cols)});
  }

  void emit_move(const Statement& s, const Operand& operand) {
    const TileDecl& tile = declared(operand);
    const TensorDecl& tensor = program_.tensors[static_cast<std::size_t>(s.tensor)];
    Event event{.statement = &s,
                .tile = &tile,
                .tensor = &tensor,
                .rows = span(tile.rows),
                .cols = span(tile.cols)};
    if (s.region.size() == 3) {
      event.split = environment_[static_cast<std::size_t>(s.region[0].loop)];
    }
    event.bytes = bytes_of(elements(tile), element_bytes(tensor.width, dtype_));
    emit(event);
  }

  void emit(Event event) {
    event.resident = resident_;
    event.environment = &environment_;
    sink_(event);
  }

  const TileDecl& declared(const Operand& operand) const {
    return program_.tiles[static_cast<std::size_t>(operand.tile)];
  }
  Interval span(const Extent& extent) const {
    return interval_of(extent, schedule_, program_, environment_);
  }
  Elements elements(const TileDecl& tile) const {
    return Elements(checked_mul(span(tile.rows).size(), span(tile.cols).size()));
  }

  const Program& program_;
  const Schedule& schedule_;
  NumberFormat dtype_;
  const std::function<void(const Event&)>& sink_;
  Environment environment_;
  std::vector<Elements> held_;  // by resident tiles
  std::vector<int> stack_;      // tiles in order of arrival
  Elements resident_;
};

using Json = nlohmann::ordered_json;

std::string_view coverage_name(Coverage coverage) {
  return coverage == Coverage::full ? "full" : coverage == Coverage::partial ? "partial" : "empty";
}

Json event_json(const Event& event, const Program& program, const Schedule& schedule) {
  Json json{{"op", name(event.statement->op)}};
  if (event.statement->op == Op::kernel) {
    json["label"] = event.statement->label;
    return json;
  }
  Json loops = Json::object();
  for (std::size_t loop = 0; loop < program.loops.size(); ++loop) {
    const Index block = (*event.environment)[loop];
    if (block != kNone) loops[program.loops[loop].name] = block;
  }
  json["loops"] = loops;
  json["tile"] = event.tile->name;
  json["rows"] = {event.rows.begin, event.rows.end};
  json["cols"] = {event.cols.begin, event.cols.end};
  if (event.tensor != nullptr) {
    json["tensor"] = event.tensor->name;
    if (event.split != kNone) json["split"] = event.split;
    json["bytes"] = static_cast<std::int64_t>(event.bytes.value());
  }
  if (event.statement->op == Op::logits) {
    json["coverage"] = coverage_name(schedule.coverage(event.rows, event.cols));
  }
  json["resident_elements"] = static_cast<std::int64_t>(event.resident.value());
  return json;
}

Json schedule_json(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  const Tile& tile = schedule.tile;
  return {{"seqlen_q", shape.seqlen_q},
          {"seqlen_kv", shape.seqlen_kv},
          {"head_dim", shape.head_dim},
          {"head_dim_v", shape.head_dim_v},
          {"window_left", schedule.mask.window_left},
          {"window_right", schedule.mask.window_right},
          {"block_mask", schedule.mask.blocks.present()},
          {"block_q", tile.block_q},
          {"block_kv", tile.block_kv},
          {"panel", tile.panel},
          {"num_splits", tile.num_splits}};
}

}  // namespace

void record(const Program& program, const Schedule& schedule, NumberFormat dtype,
            const std::function<void(const Event&)>& sink) {
  RecordMachine(program, schedule, dtype, sink).run();
}

std::string record_json(const Program& program, const Schedule& schedule, NumberFormat dtype) {
  Json events = Json::array();
  record(program, schedule, dtype,
         [&](const Event& event) { events.push_back(event_json(event, program, schedule)); });
  const Json document{{"schema_version", 1},
                      {"algorithm", program.name},
                      {"dtype", name(dtype)},
                      {"schedule", schedule_json(schedule)},
                      {"events", events}};
  return document.dump(1);
}

}  // namespace flashbound
