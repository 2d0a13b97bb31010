// flash2 (Dao 2023, arXiv 2307.08691, Algorithm 1) as plain scalar code, for cachegrind to watch:
// queries outer, keys inner, tiles copied into scratch arrays that play the fast memory, in the
// order of core's flash2 program. Every move between the tensors and scratch is a function of its
// own, so that misses come with a name.
//
// tiled_program SEQLEN_Q SEQLEN_KV HEAD_DIM BLOCK_Q BLOCK_KV [--addresses]
// prints a checksum of O and lse, and with --addresses a line "array NAME ADDRESS BYTES" each.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

// No inlining, no cloning, no merging of equal functions: each keeps its own name.
#define FLASHBOUND_NAMED __attribute__((noipa))

namespace {

constexpr std::size_t kAlignment = 4096;

struct Sizes {
  std::size_t seqlen_q = 0, seqlen_kv = 0, head_dim = 0, block_q = 0, block_kv = 0;
};

struct Arrays {
  float *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr, *lse = nullptr;
  // Fast memory: tiles of Q, K and V, scores, the accumulator of O, row maxima and sums.
  float *q_i = nullptr, *k_j = nullptr, *v_j = nullptr, *s = nullptr, *acc_o = nullptr;
  float *row_max = nullptr, *row_sum = nullptr;
};

float* allocate(const char* name, std::size_t count, bool say) {
  const std::size_t bytes = count * sizeof(float);
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) std::exit(3);
  if (say) std::printf("array %s %ju %zu\n", name, reinterpret_cast<std::uintptr_t>(memory), bytes);
  return static_cast<float*>(memory);
}

FLASHBOUND_NAMED void fill(float* to, std::size_t count, std::uint32_t seed) {
  for (std::size_t e = 0; e < count; ++e) {
    seed = seed * 1664525U + 1013904223U;
    to[e] = static_cast<float>(seed >> 8U) * 0x1p-23F - 1.0F;
  }
}

FLASHBOUND_NAMED void load_q(float* to, const float* from, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) to[e] = from[e];
}
FLASHBOUND_NAMED void load_k(float* to, const float* from, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) to[e] = from[e];
}
FLASHBOUND_NAMED void load_v(float* to, const float* from, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) to[e] = from[e];
}
FLASHBOUND_NAMED void store_o(float* to, const float* from, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) to[e] = from[e];
}
FLASHBOUND_NAMED void store_lse(float* to, const float* row_max, const float* row_sum,
                                std::size_t rows) {
  for (std::size_t r = 0; r < rows; ++r) to[r] = row_max[r] + std::log(row_sum[r]);
}

FLASHBOUND_NAMED void start_rows(const Arrays& a, std::size_t rows, std::size_t head_dim) {
  for (std::size_t e = 0; e < rows * head_dim; ++e) a.acc_o[e] = 0.0F;
  for (std::size_t r = 0; r < rows; ++r) {
    a.row_max[r] = -std::numeric_limits<float>::infinity();
    a.row_sum[r] = 0.0F;
  }
}

FLASHBOUND_NAMED void scores(const Arrays& a, std::size_t rows, std::size_t keys,
                             std::size_t head_dim, float scale) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < keys; ++c) {
      float sum = 0.0F;
      for (std::size_t x = 0; x < head_dim; ++x) {
        sum += a.q_i[r * head_dim + x] * a.k_j[c * head_dim + x];
      }
      a.s[r * keys + c] = sum * scale;
    }
  }
}

// Folds the scores into row maxima, row sums and the accumulator, which is rescaled.
FLASHBOUND_NAMED void online_softmax(const Arrays& a, std::size_t rows, std::size_t keys,
                                     std::size_t head_dim) {
  for (std::size_t r = 0; r < rows; ++r) {
    float* s = a.s + r * keys;
    float top = a.row_max[r];
    for (std::size_t c = 0; c < keys; ++c) top = std::max(top, s[c]);
    const float factor = std::exp(a.row_max[r] - top);
    float sum = a.row_sum[r] * factor;
    for (std::size_t c = 0; c < keys; ++c) {
      s[c] = std::exp(s[c] - top);
      sum += s[c];
    }
    for (std::size_t x = 0; x < head_dim; ++x) a.acc_o[r * head_dim + x] *= factor;
    a.row_max[r] = top;
    a.row_sum[r] = sum;
  }
}

FLASHBOUND_NAMED void add_values(const Arrays& a, std::size_t rows, std::size_t keys,
                                 std::size_t head_dim) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < keys; ++c) {
      const float weight = a.s[r * keys + c];
      for (std::size_t x = 0; x < head_dim; ++x) {
        a.acc_o[r * head_dim + x] += weight * a.v_j[c * head_dim + x];
      }
    }
  }
}

FLASHBOUND_NAMED void divide(const Arrays& a, std::size_t rows, std::size_t head_dim) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t x = 0; x < head_dim; ++x) a.acc_o[r * head_dim + x] /= a.row_sum[r];
  }
}

FLASHBOUND_NAMED void attend(const Arrays& a, const Sizes& n) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(n.head_dim));
  for (std::size_t i = 0; i < n.seqlen_q; i += n.block_q) {
    const std::size_t rows = std::min(n.block_q, n.seqlen_q - i);
    load_q(a.q_i, a.q + i * n.head_dim, rows * n.head_dim);
    start_rows(a, rows, n.head_dim);
    for (std::size_t j = 0; j < n.seqlen_kv; j += n.block_kv) {
      const std::size_t keys = std::min(n.block_kv, n.seqlen_kv - j);
      load_k(a.k_j, a.k + j * n.head_dim, keys * n.head_dim);
      scores(a, rows, keys, n.head_dim, scale);
      load_v(a.v_j, a.v + j * n.head_dim, keys * n.head_dim);
      online_softmax(a, rows, keys, n.head_dim);
      add_values(a, rows, keys, n.head_dim);
    }
    divide(a, rows, n.head_dim);
    store_o(a.o + i * n.head_dim, a.acc_o, rows * n.head_dim);
    store_lse(a.lse + i, a.row_max, a.row_sum, rows);
  }
}

// FNV-1a over the bits: the same run gives the same number.
FLASHBOUND_NAMED std::uint64_t checksum(const float* values, std::size_t count,
                                        std::uint64_t hash) {
  for (std::size_t e = 0; e < count; ++e) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[e], sizeof(bits));
    hash = (hash ^ bits) * 1099511628211ULL;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fputs("tiled_program SEQLEN_Q SEQLEN_KV HEAD_DIM BLOCK_Q BLOCK_KV [--addresses]\n",
               stderr);
    return 2;
  }
  std::size_t sizes[5] = {};
  for (int n = 0; n < 5; ++n) {
    sizes[n] = std::strtoul(argv[n + 1], nullptr, 10);
    if (sizes[n] == 0 || sizes[n] > 65536) {
      std::fprintf(stderr, "size %d = %s: must be in [1, 65536]\n", n + 1, argv[n + 1]);
      return 2;
    }
  }
  const Sizes n{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
  const bool say = argc > 6 && std::strcmp(argv[6], "--addresses") == 0;
  const auto array = [&](const char* name, std::size_t count) {
    return allocate(name, count, say);
  };
  Arrays a;
  a.q = array("q", n.seqlen_q * n.head_dim);
  a.k = array("k", n.seqlen_kv * n.head_dim);
  a.v = array("v", n.seqlen_kv * n.head_dim);
  a.o = array("o", n.seqlen_q * n.head_dim);
  a.lse = array("lse", n.seqlen_q);
  a.q_i = array("q_i", n.block_q * n.head_dim);
  a.k_j = array("k_j", n.block_kv * n.head_dim);
  a.v_j = array("v_j", n.block_kv * n.head_dim);
  a.s = array("s", n.block_q * n.block_kv);
  a.acc_o = array("acc_o", n.block_q * n.head_dim);
  a.row_max = array("row_max", n.block_q);
  a.row_sum = array("row_sum", n.block_q);

  fill(a.q, n.seqlen_q * n.head_dim, 1);
  fill(a.k, n.seqlen_kv * n.head_dim, 2);
  fill(a.v, n.seqlen_kv * n.head_dim, 3);
  attend(a, n);
  std::uint64_t hash = checksum(a.o, n.seqlen_q * n.head_dim, 14695981039346656037ULL);
  hash = checksum(a.lse, n.seqlen_q, hash);
  std::printf("checksum %016jx\n", static_cast<std::uintmax_t>(hash));
  return 0;
}
