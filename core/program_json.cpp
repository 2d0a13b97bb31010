#include "core/errors.hpp"
#include "core/program.hpp"
#include "core/program_names.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace flashbound {
namespace {

using Json = nlohmann::ordered_json;

Json write(const LoopRange& range) {
  Json json{{"kind", name(range.kind)}};
  if (range.of != kNone) json["of"] = range.of;
  if (range.split != kNone) json["split"] = range.split;
  return json;
}

Json write(const Extent& extent) {
  Json json{{"axis", name(extent.axis)}};
  if (extent.loop != kNone) json["loop"] = extent.loop;
  return json;
}

Json write(const std::vector<Extent>& region) {
  Json json = Json::array();
  for (const Extent& extent : region) json.push_back(write(extent));
  return json;
}

Json write(const TileDecl& tile) {
  Json json{{"name", tile.name},
            {"role", name(tile.role)},
            {"rows", write(tile.rows)},
            {"cols", write(tile.cols)}};
  if (tile.copied) json["copies"] = write(tile.copies);
  return json;
}

Json write(const TensorDecl& tensor) {
  Json axes = Json::array();
  for (const Axis axis : tensor.axes) axes.push_back(name(axis));
  return {{"name", tensor.name},
          {"role", name(tensor.role)},
          {"width", name(tensor.width)},
          {"initial", name(tensor.initial)},
          {"axes", axes}};
}

Json write(const Operand& operand) {
  Json json{{"tile", operand.tile}};
  if (operand.copy != kNone) json["copy"] = operand.copy;
  return json;
}

Json write(const std::vector<Statement>& body);

Json write(const Statement& s) {
  Json json{{"op", name(s.op)}};
  if (s.op == Op::kernel) json["label"] = s.label;
  if (s.loop != kNone) json["loop"] = s.loop;
  if (s.tensor != kNone) json["tensor"] = s.tensor;
  if (!s.region.empty()) json["region"] = write(s.region);
  if (s.op == Op::allocate) json["fill"] = name(s.fill);
  if (s.result.present()) json["result"] = write(s.result);
  if (s.a.present()) json["a"] = write(s.a);
  if (s.b.present()) json["b"] = write(s.b);
  if (s.op == Op::kernel || s.op == Op::loop) json["body"] = write(s.body);
  return json;
}

Json write(const std::vector<Statement>& body) {
  Json json = Json::array();
  for (const Statement& statement : body) json.push_back(write(statement));
  return json;
}

template <class Enum>
Enum read_enum(const Json& json) {
  Enum value{};
  const std::string text = json.get<std::string>();
  if (!parse(text, value)) throw ConfigError("program: unknown word '" + text + "'");
  return value;
}

// A number of a loop, tensor or tile. The JSON library would narrow 2^32 + 1 or 1.5 to 1.
int read_number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<int>::max()) {
    reject(std::string("program ") + key, value.dump(), "a whole number from 0");
  }
  return value.get<int>();
}

int read_optional_number(const Json& json, const char* key) {
  return json.contains(key) ? read_number(json, key) : kNone;
}

LoopRange read_range(const Json& json) {
  return {read_enum<RangeKind>(json.at("kind")), read_optional_number(json, "of"),
          read_optional_number(json, "split")};
}

Extent read_extent(const Json& json) {
  return {read_enum<Axis>(json.at("axis")), read_optional_number(json, "loop")};
}

Operand read_operand(const Json& statement, const char* key) {
  if (!statement.contains(key)) return {};
  const Json& json = statement.at(key);
  return {read_number(json, "tile"), read_optional_number(json, "copy")};
}

TileDecl read_tile(const Json& json) {
  TileDecl tile{json.at("name").get<std::string>(), read_enum<TileRole>(json.at("role")),
                read_extent(json.at("rows")), read_extent(json.at("cols"))};
  tile.copied = json.contains("copies");
  if (tile.copied) tile.copies = read_range(json.at("copies"));
  return tile;
}

TensorDecl read_tensor(const Json& json) {
  TensorDecl tensor{json.at("name").get<std::string>(), read_enum<TensorRole>(json.at("role")),
                    read_enum<Width>(json.at("width")), read_enum<Content>(json.at("initial"))};
  for (const Json& axis : json.at("axes")) tensor.axes.push_back(read_enum<Axis>(axis));
  return tensor;
}

// Deep enough for any algorithm; bounds the recursion on hostile text.
constexpr int kNestingMax = 64;

std::vector<Statement> read_body(const Json& json, int depth) {
  if (depth > kNestingMax) {
    reject("program nesting", "over " + std::to_string(kNestingMax), "less deep");
  }
  std::vector<Statement> body;
  for (const Json& entry : json) {
    Statement s;
    s.op = read_enum<Op>(entry.at("op"));
    s.label = entry.value("label", "");
    s.loop = read_optional_number(entry, "loop");
    s.tensor = read_optional_number(entry, "tensor");
    if (entry.contains("region")) {
      for (const Json& extent : entry.at("region")) s.region.push_back(read_extent(extent));
    }
    if (entry.contains("fill")) s.fill = read_enum<Content>(entry.at("fill"));
    s.result = read_operand(entry, "result");
    s.a = read_operand(entry, "a");
    s.b = read_operand(entry, "b");
    if (entry.contains("body")) s.body = read_body(entry.at("body"), depth + 1);
    body.push_back(std::move(s));
  }
  return body;
}

Program read_program(const Json& json) {
  Program program;
  program.name = json.at("program").get<std::string>();
  for (const Json& tensor : json.at("tensors")) program.tensors.push_back(read_tensor(tensor));
  for (const Json& tile : json.at("tiles")) program.tiles.push_back(read_tile(tile));
  for (const Json& loop : json.at("loops")) {
    program.loops.push_back({loop.at("name").get<std::string>(), read_range(loop.at("range"))});
  }
  program.body = read_body(json.at("body"), 0);
  return program;
}

}  // namespace

std::string to_json(const Program& program) {
  Json tensors = Json::array();
  for (const TensorDecl& tensor : program.tensors) tensors.push_back(write(tensor));
  Json tiles = Json::array();
  for (const TileDecl& tile : program.tiles) tiles.push_back(write(tile));
  Json loops = Json::array();
  for (const LoopDecl& loop : program.loops) {
    loops.push_back({{"name", loop.name}, {"range", write(loop.range)}});
  }
  const Json document{{"schema_version", 1}, {"program", program.name},
                      {"tensors", tensors},  {"tiles", tiles},
                      {"loops", loops},      {"body", write(program.body)}};
  return document.dump(1);
}

Program program_from_json(const std::string& text) {
  Program program;
  try {
    program = read_program(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(std::string("program JSON: ") + error.what());
  }
  validate(program);
  return program;
}

}  // namespace flashbound
