// The best lower bound on what crosses the boundary that is known for a fast memory of M bytes.
#pragma once

#include "core/bounds.hpp"
#include "core/segment_bound.hpp"

#include <algorithm>

namespace flashbound {

// Compulsory reads and segment reads are the same reads seen twice: the larger counts. What must be
// written is apart.
struct LowerBound {
  CompulsoryBound compulsory{};
  SegmentBound segment{};
  ProductBound product{};

  Bytes read_bytes() const { return std::max(compulsory.read_bytes(), segment.read); }
  Bytes write_bytes() const { return compulsory.write_bytes(); }
  Bytes bytes() const { return std::max(read_bytes() + write_bytes(), product.moved); }
};

// For algorithms of the class `values`, as every program here is, with one fast memory.
inline LowerBound lower_bound(const Problem& problem, NumberFormat dtype, Pass pass,
                              Bytes fast_memory) {
  return {compulsory_bound(problem, dtype, pass),
          segment_bound(problem, dtype, fast_memory, ComputationClass::values, pass),
          product_bound(problem, dtype, fast_memory, pass)};
}

}  // namespace flashbound
