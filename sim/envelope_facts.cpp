#include "sim/envelope_facts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace flashbound {
namespace {

double real(Bytes bytes) { return static_cast<double>(bytes.value()); }

// N^2 d over all heads, in words.
double square_words(const Problem& problem) {
  const double heads =
      static_cast<double>(problem.batch) * static_cast<double>(problem.num_heads_q);
  return heads * static_cast<double>(problem.seqlen_q) * static_cast<double>(problem.seqlen_kv) *
         static_cast<double>(problem.head_dim);
}

}  // namespace

std::vector<Takeover> takeovers(const Staircase& envelope) {
  std::vector<Takeover> result;
  for (const StairPoint& point : envelope.points) {
    if (result.empty() || result.back().algorithm != point.algorithm) {
      result.push_back({point.sram, point.algorithm});
    }
  }
  return result;
}

Crossing crossing(const Staircase& a, const Staircase& b) {
  Crossing result;
  // Between points of either nothing changes.
  std::size_t next_a = 0;
  std::size_t next_b = 0;
  while (next_a < a.points.size() || next_b < b.points.size()) {
    const bool both = next_a < a.points.size() && next_b < b.points.size();
    const bool step_a =
        both ? a.points[next_a].sram <= b.points[next_b].sram : next_a < a.points.size();
    const Bytes here = step_a ? a.points[next_a].sram : b.points[next_b].sram;
    while (next_a < a.points.size() && a.points[next_a].sram == here) ++next_a;
    while (next_b < b.points.size() && b.points[next_b].sram == here) ++next_b;
    const bool less =
        next_a > 0 && (next_b == 0 || a.points[next_a - 1].moved() < b.points[next_b - 1].moved());
    if (less && !result.first) result.first = here;
    if (less && !result.for_good) result.for_good = here;
    if (!less) result.for_good.reset();
  }
  return result;
}

std::optional<double> slope(const Staircase& staircase, Bytes low, Bytes high, Bytes fixed,
                            int samples) {
  std::vector<double> xs;
  std::vector<double> ys;
  const double first = std::log(real(low));
  const double step = (std::log(real(high)) - first) / std::max(samples - 1, 1);
  for (int s = 0; s < samples; ++s) {
    // The ends themselves, whatever their logarithms round to.
    const Bytes within(static_cast<Int128>(std::exp(first + s * step)));
    const Bytes sram = s == 0 ? low : s == samples - 1 ? high : within;
    const StairPoint* point = staircase.at(sram);
    if (point == nullptr || point->moved() <= fixed) continue;
    // At the point's own size: between steps the curve is flat, which is no property of the law.
    xs.push_back(std::log(real(point->sram)));
    ys.push_back(std::log(real(point->moved() - fixed)));
  }
  if (xs.empty() || xs.front() == xs.back()) return std::nullopt;  // ascending
  const double mean = std::accumulate(xs.begin(), xs.end(), 0.0) / static_cast<double>(xs.size());
  double sum_xx = 0;
  double sum_xy = 0;
  for (std::size_t s = 0; s < xs.size(); ++s) {
    sum_xx += (xs[s] - mean) * (xs[s] - mean);
    sum_xy += (xs[s] - mean) * ys[s];
  }
  return sum_xy / sum_xx;
}

Bytes knee(const Staircase& staircase) { return staircase.points.back().sram; }

Bytes knee_within(const Staircase& staircase, double share) {
  const double enough = (1 + share) * real(staircase.points.back().moved());
  for (const StairPoint& point : staircase.points) {
    if (real(point.moved()) <= enough) return point.sram;
  }
  return knee(staircase);
}

std::optional<double> flash_constant(const Staircase& staircase, const Problem& problem,
                                     NumberFormat dtype, Bytes sram) {
  const StairPoint* point = staircase.at(sram);
  if (point == nullptr) return std::nullopt;
  const auto b = static_cast<double>(byte_size(dtype));
  const double unit =
      square_words(problem) * static_cast<double>(problem.head_dim) * b * b / real(sram);
  return real(point->moved()) / unit;
}

std::optional<double> small_cache_constant(const Staircase& staircase, const Problem& problem,
                                           NumberFormat dtype, Bytes sram, Bytes fixed) {
  const StairPoint* point = staircase.at(sram);
  if (point == nullptr) return std::nullopt;
  const auto b = static_cast<double>(byte_size(dtype));
  const double unit = square_words(problem) * b * std::sqrt(b) / std::sqrt(real(sram));
  return real(point->moved() - fixed) / unit;
}

}  // namespace flashbound
