#include "experiments/npy_inputs.hpp"

#include "core/errors.hpp"

#include <string>
#include <utility>

namespace flashbound {
namespace {

void require_axis(const char* what, Index value, Index wanted, const char* as) {
  if (value != wanted) {
    reject(what, std::to_string(value), std::to_string(wanted) + " as in " + as);
  }
}

}  // namespace

NpyInputs read_npy_inputs(const Options& options) {
  NpyInputs files;
  const auto read = [&](const char* name) {
    NpyArray array = read_npy(options.text(name));
    const NpyType type = array.type;
    Tensor<double> tensor = tensor_of(std::move(array), name);
    if (std::string_view(name) == "q") files.type = type;
    if (type != files.type) {
      reject(std::string(name) + " dtype", flashbound::name(type),
             std::string(flashbound::name(files.type)) + " as q is");
    }
    return tensor;
  };
  files.inputs.q = read("q");
  files.inputs.k = read("k");
  files.inputs.v = read("v");
  return files;
}

KnownShape shape_of(const OwnedInputs& inputs) {
  const auto& q = inputs.q.shape;
  const auto& k = inputs.k.shape;
  const auto& v = inputs.v.shape;
  require_axis("k batch", k[0], q[0], "q");
  require_axis("v batch", v[0], q[0], "q");
  require_axis("v num_heads", v[1], k[1], "k");
  require_axis("v seqlen", v[2], k[2], "k");
  require_axis("k head_dim", k[3], q[3], "q");
  return {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
}

}  // namespace flashbound
