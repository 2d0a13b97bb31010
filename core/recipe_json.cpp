// Recipes as JSON. Fields are listed once, in describe(), for reading and for writing.
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/recipe.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace flashbound {
namespace {

using Json = nlohmann::ordered_json;

// In the order of the enumerators.
constexpr std::array<std::string_view, 4> kOrders{"any", "sequential", "pairwise", "tensor_core"};
constexpr std::array<std::string_view, 3> kExponentials{"correctly_rounded", "hardware",
                                                        "polynomial"};
constexpr std::array<std::string_view, 3> kRescales{"always", "when_maximum_changes",
                                                    "beyond_threshold"};
constexpr std::array<std::string_view, 2> kShifts{"maximum", "avoid_one"};
constexpr std::array<std::string_view, 3> kScalings{"none", "per_tensor", "per_block"};

constexpr const auto& names_of(SumOrder) { return kOrders; }
constexpr const auto& names_of(ExponentialKind) { return kExponentials; }
constexpr const auto& names_of(RescaleRule) { return kRescales; }
constexpr const auto& names_of(Shift) { return kShifts; }
constexpr const auto& names_of(Scaling) { return kScalings; }
constexpr const auto& names_of(Rounding) { return kRoundingNames; }

template <class Archive>
void describe(Archive& fields, Accumulation& product) {
  fields("product", product.product);
  fields("sum", product.sum);
  fields("order", product.order);
  fields("block", product.block);
  fields("alignment_bits", product.alignment_bits);
}
template <class Archive>
void describe(Archive& fields, Exponential& exponential) {
  fields("kind", exponential.kind);
  fields("degree", exponential.degree);
}
template <class Archive>
void describe(Archive& fields, Rescale& rescale) {
  fields("rule", rescale.rule);
  fields("threshold_log2", rescale.threshold_log2);
}
template <class Archive>
void describe(Archive& fields, Quantization& quantization) {
  fields("scaling", quantization.scaling);
  fields("block_q", quantization.block_q);
  fields("block_kv", quantization.block_kv);
  fields("rotated", quantization.rotated);
}
template <class Archive>
void describe(Archive& fields, Recipe& recipe) {
  fields("name", recipe.name);
  fields("inputs", recipe.inputs);
  fields("scores", recipe.scores);
  fields("statistics", recipe.statistics);
  fields("probabilities", recipe.probabilities);
  fields("accumulator", recipe.accumulator);
  fields("stored", recipe.stored);
  fields("scores_product", recipe.scores_product);
  fields("values_product", recipe.values_product);
  fields("row_sum", recipe.row_sum);
  fields("sum_of_rounded", recipe.sum_of_rounded);
  fields("exponential", recipe.exponential);
  fields("rescale", recipe.rescale);
  fields("shift", recipe.shift);
  fields("shift_factor", recipe.shift_factor);
  fields("weight_offset_log2", recipe.weight_offset_log2);
  fields("rounding", recipe.rounding);
  fields("quantization", recipe.quantization);
}

struct Writer {
  Json json = Json::object();

  template <class T>
  void operator()(const char* key, T& value) {
    json[key] = write(std::as_const(value));
  }

 private:
  static Json write(const std::string& value) { return value; }
  static Json write(bool value) { return value; }
  static Json write(int value) { return value; }
  static Json write(Index value) { return value; }
  static Json write(double value) { return value; }
  static Json write(const FloatFormat& value) { return to_string(value); }
  static Json write(const std::optional<FloatFormat>& value) {
    return value ? to_string(*value) : "exact";
  }
  template <class T>
  static Json write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return names_of(value).at(static_cast<std::size_t>(value));
    } else {
      Writer inner;
      T copy = value;  // describe() serves readers too, which change what they visit
      describe(inner, copy);
      return inner.json;
    }
  }
};

// Changes the fields that the text has; finish() rejects what no field has taken.
class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) reject(path_, brief(json), "an object");
  }

  template <class T>
  void operator()(const char* key, T& value) {
    known_.insert(key);
    const auto found = json_.find(key);
    if (found != json_.end()) read(path_ + " " + key, *found, value);
  }

  void finish() const {
    for (const auto& item : json_.items()) {
      if (known_.count(item.key()) != 0) continue;
      std::string names;
      for (const std::string& name : known_) names += (names.empty() ? "" : ", ") + name;
      reject(path_ + " field", item.key(), "one of " + names);
    }
  }

 private:
  static void read(const std::string& field, const Json& json, std::string& value) {
    if (!json.is_string()) reject(field, brief(json), "a text");
    value = json.get<std::string>();
  }
  static void read(const std::string& field, const Json& json, bool& value) {
    if (!json.is_boolean()) reject(field, brief(json), "true or false");
    value = json.get<bool>();
  }
  static void read(const std::string& field, const Json& json, double& value) {
    if (!json.is_number()) reject(field, brief(json), "a number");
    value = json.get<double>();
  }
  static void read(const std::string& field, const Json& json, Index& value) {
    constexpr Index kLargest = Index{1} << 53;
    // Comparing would take a large unsigned number for a negative one.
    const bool whole = json.is_number_unsigned()
                           ? json.get<std::uint64_t>() <= std::uint64_t{kLargest}
                           : json.is_number_integer() && json.get<Index>() >= -kLargest &&
                                 json.get<Index>() <= kLargest;
    if (!whole) reject(field, brief(json), "a whole number");
    value = json.get<Index>();
  }
  static void read(const std::string& field, const Json& json, int& value) {
    Index wide = 0;
    read(field, json, wide);
    if (wide < -1'000'000 || wide > 1'000'000) reject(field, brief(json), "-1000000..1000000");
    value = static_cast<int>(wide);
  }
  static void read(const std::string& field, const Json& json, FloatFormat& value) {
    std::string text;
    read(field, json, text);
    value = parse_float_format(field, text);
  }
  static void read(const std::string& field, const Json& json, std::optional<FloatFormat>& value) {
    value.reset();
    if (json == "exact") return;
    try {
      read(field, json, value.emplace());
    } catch (const ConfigError& error) {
      throw ConfigError(std::string(error.what()) + ", or exact");
    }
  }
  template <class T>
  static void read(const std::string& field, const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::string allowed;
      const auto& names = names_of(value);
      for (std::size_t at = 0; at < names.size(); ++at) {
        if (json == names[at]) {
          value = static_cast<T>(at);
          return;
        }
        allowed += (at == 0 ? "" : ", ") + std::string(names[at]);
      }
      reject(field, brief(json), "one of " + allowed);
    } else {
      Reader inner(json, field);
      describe(inner, value);
      inner.finish();
    }
  }

  const Json& json_;
  std::string path_;
  std::set<std::string> known_;
};

}  // namespace

std::string to_json(const Recipe& recipe) {
  Writer writer;
  Recipe copy = recipe;  // describe() serves readers too, which change what they visit
  describe(writer, copy);
  return writer.json.dump(2) + "\n";
}

Recipe recipe_from_json(std::string_view text) {
  Json json = parse_json_strictly("recipe", text);
  if (!json.is_object()) reject("recipe", brief(json), "an object");
  Recipe recipe = uniform_recipe("", float_format(NumberFormat::fp32));
  if (const auto base = json.find("base"); base != json.end()) {
    if (!base->is_string()) reject("recipe base", brief(*base), "the name of a recipe");
    recipe = recipe_named(base->get<std::string>());
    recipe.name.clear();
    json.erase("base");
  }
  Reader reader(json, "recipe");
  describe(reader, recipe);
  reader.finish();
  if (recipe.name.empty()) reject("recipe name", "\"\"", "given");
  validate(recipe);
  return recipe;
}

}  // namespace flashbound
