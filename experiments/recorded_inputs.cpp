#include "experiments/recorded_inputs.hpp"

#include "core/reference.hpp"
#include "experiments/io_error.hpp"
#include "experiments/npy.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace flashbound {

std::vector<std::string> recorded_names() {
  return {"minilm-layer0", "minilm-layer2", "minilm-layer5"};
}

RecordedInputs read_recorded(const std::string& folder, const std::string& name) {
  std::string stem = name;
  std::replace(stem.begin(), stem.end(), '-', '_');
  const auto tensor = [&](const char* which) {
    const std::string path = folder + "/" + stem + "_" + which + ".npy";
    return tensor_of(read_npy(path), path);
  };
  RecordedInputs recorded;
  recorded.name = name;
  recorded.inputs = {tensor("q"), tensor("k"), tensor("v")};
  const auto& q = recorded.inputs.q.shape;
  const auto& k = recorded.inputs.k.shape;
  Problem& p = recorded.problem;
  p.batch = q[0];
  p.num_heads_q = q[1];
  p.num_heads_kv = k[1];
  p.seqlen_q = q[2];
  p.seqlen_kv = k[2];
  p.head_dim = q[3];
  p.head_dim_v = recorded.inputs.v.shape[3];
  validate(p);
  validate(p, recorded.inputs.view());
  // Ragged on both axes: 512 is a multiple of neither.
  recorded.tile = {.block_q = 96, .block_kv = 80, .panel = 8, .num_splits = 3};
  return recorded;
}

std::string default_activations() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed =
      command.parent_path().parent_path() / "share" / "flashbound" / "activations";
  const fs::path source = fs::path(FLASHBOUND_SOURCE_DIR) / "experiments" / "activations";
  for (const fs::path& folder : {installed, source}) {
    if (fs::is_directory(folder, error)) return folder.string();
  }
  throw IoError("cannot read " + source.string() + ": no recorded activations (--activations)");
}

}  // namespace flashbound
