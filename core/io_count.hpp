// What a count says: elements across the HBM boundary per tensor, residency, and arithmetic.
#pragma once

#include "core/number_format.hpp"
#include "core/program.hpp"
#include "core/units.hpp"

#include <string>
#include <vector>

namespace flashbound {

// Traffic of one tensor between HBM and fast memory. Read: into fast memory. Write: out of it.
struct TensorTraffic {
  std::string tensor;
  Index element_bytes = 0;  // in HBM
  Elements read{};
  Elements written{};

  Bytes read_bytes() const { return bytes_of(read, element_bytes); }
  Bytes write_bytes() const { return bytes_of(written, element_bytes); }
  friend bool operator==(const TensorTraffic&, const TensorTraffic&) = default;
};

// All exact. Traffic and arithmetic are summed over heads and sequences; the residency is the
// largest of any one head, since each has the fast memory to itself.
struct IoCount {
  std::vector<TensorTraffic> tensors;  // in the program's order
  Elements sram_peak{};                // numbers resident together, at most, one word each
  Flops flops{};                       // of the matrix products of visited tiles
  Events exponentials{};               // of visited tiles and of rescale factors
  Events rescales_at_most{};           // rows whose maximum might move: data decides how many do
  friend bool operator==(const IoCount&, const IoCount&) = default;
};

Bytes hbm_read_bytes(const IoCount& count);
Bytes hbm_write_bytes(const IoCount& count);
Bytes hbm_bytes(const IoCount& count);

// Bytes of one element in HBM. Row statistics and partial results keep at least 32 bits, as
// kernels for narrower inputs store them.
Index element_bytes(Width width, NumberFormat dtype);

}  // namespace flashbound
