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

Tensor<double> read_like_q(const Options& options, const char* name, NpyType wanted) {
  NpyArray array = read_npy(options.text(name));
  const NpyType type = array.type;
  Tensor<double> tensor = tensor_of(std::move(array), name);
  if (type != wanted) {
    reject(std::string(name) + " dtype", flashbound::name(type),
           std::string(flashbound::name(wanted)) + " as q is");
  }
  return tensor;
}

}  // namespace

NpyInputs read_npy_inputs(const Options& options) {
  NpyInputs files;
  NpyArray q = read_npy(options.text("q"));
  files.type = q.type;
  files.inputs.q = tensor_of(std::move(q), "q");
  files.inputs.k = read_like_q(options, "k", files.type);
  files.inputs.v = read_like_q(options, "v", files.type);
  return files;
}

Tensor<double> read_npy_grad_o(const Options& options, const NpyInputs& inputs) {
  Tensor<double> grad_o = read_like_q(options, "grad-o", inputs.type);
  const auto& q = inputs.inputs.q.shape;
  require_axis("grad-o batch", grad_o.shape[0], q[0], "q");
  require_axis("grad-o num_heads", grad_o.shape[1], q[1], "q");
  require_axis("grad-o seqlen", grad_o.shape[2], q[2], "q");
  require_axis("grad-o head_dim", grad_o.shape[3], inputs.inputs.v.shape[3], "v");
  return grad_o;
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
