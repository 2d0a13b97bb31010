// Tensors of attention calls: shape (batch, heads, seqlen, dim) over memory with strides.
#pragma once

#include "core/int128.hpp"

#include <array>
#include <vector>

namespace flashbound {

// A non-owning view; `strides` are in elements and may be anything, the innermost included.
template <class T>
struct TensorView {
  T* data = nullptr;
  std::array<Index, 4> shape{};
  std::array<Index, 4> strides{};

  T& operator()(Index b, Index h, Index row, Index col) const {
    return data[b * strides[0] + h * strides[1] + row * strides[2] + col * strides[3]];
  }
};

// A dense row-major tensor that owns its elements.
template <class T>
struct Tensor {
  std::array<Index, 4> shape{};
  std::vector<T> elements;

  Tensor() = default;
  explicit Tensor(std::array<Index, 4> of_shape, T value = T{})
      : shape(of_shape),
        elements(static_cast<std::size_t>(of_shape[0] * of_shape[1] * of_shape[2] * of_shape[3]),
                 value) {}

  std::array<Index, 4> strides() const {
    return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
  }
  TensorView<T> view() { return {elements.data(), shape, strides()}; }
  TensorView<const T> view() const { return {elements.data(), shape, strides()}; }
};

// The three inputs of a call, in any width that converts to fp64 exactly.
struct Inputs {
  TensorView<const double> q;  // (batch, num_heads_q, seqlen_q, head_dim)
  TensorView<const double> k;  // (batch, num_heads_kv, seqlen_kv, head_dim)
  TensorView<const double> v;  // (batch, num_heads_kv, seqlen_kv, head_dim_v)
};

// Inputs that own their values.
struct OwnedInputs {
  Tensor<double> q, k, v;
  Inputs view() const { return {q.view(), k.view(), v.view()}; }
};

}  // namespace flashbound
