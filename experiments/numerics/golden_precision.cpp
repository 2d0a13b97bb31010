// GO-02: attention in tiles against unfused attention as mantissa bits are added.
#include "experiments/numerics/golden.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace flashbound {
namespace {

constexpr std::size_t kSeeds = 3;
constexpr Index kRows = 32;
constexpr Index kKeys = 512;
constexpr Index kHeadDim = 64;
constexpr Tile kTile{.block_q = 32, .block_kv = 64};
// The reference is in fp64 itself: beyond these bits it is no longer far more exact than a run.
constexpr int kJudgedBits = 40;

std::vector<int> mantissa_bits() {
  std::vector<int> bits;
  for (int k = 6; k <= 30; ++k) bits.push_back(k);
  bits.push_back(52);
  return bits;
}

FloatFormat format_of(int bits) { return parse_float_format("format", fmt::format("m{}", bits)); }

// The largest differences between three outputs.
struct Distances {
  double flash_baseline = 0;
  double flash_exact = 0;
  double baseline_exact = 0;
};

Distances distances(const Comparison& comparison, const HeadCase& head) {
  const Inputs inputs = head.inputs.view();
  const std::vector<double> flash =
      numeric_output(comparison.flash, comparison.flash_recipe, head.problem, kTile, inputs);
  const std::vector<double> baseline =
      numeric_output("standard", comparison.baseline_recipe, head.problem, kTile, inputs);
  return {deviation(flash, baseline).max_abs, deviation(flash, head.exact).max_abs,
          deviation(baseline, head.exact).max_abs};
}

// Of one number of bits, by arithmetic (every operation, every result) and seed.
using Point = std::array<std::array<Distances, kSeeds>, 2>;

Point measured(int bits) {
  const FloatFormat format = format_of(bits);
  const std::array<Comparison, 2> comparisons{every_operation(format), every_result(format)};
  Point point;
  for (std::size_t seed = 0; seed < kSeeds; ++seed) {
    const HeadCase head = head_case("normal", kRows, kKeys, kHeadDim, format, seed + 1);
    for (std::size_t c = 0; c < comparisons.size(); ++c) {
      point[c][seed] = distances(comparisons[c], head);
    }
  }
  return point;
}

double median_of(const std::array<Distances, kSeeds>& seeds, double Distances::*distance) {
  std::vector<double> values;
  values.reserve(kSeeds);
  for (const Distances& d : seeds) values.push_back(d.*distance);
  return median(values);
}

// Where a bit more makes the deviation larger.
struct Rises {
  int count = 0;
  double largest = 1;  // ratio
};

Rises rises(const std::vector<Point>& points, std::size_t comparison) {
  Rises result;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double ratio = median_of(points[i][comparison], &Distances::flash_baseline) /
                         median_of(points[i - 1][comparison], &Distances::flash_baseline);
    if (ratio <= 1) continue;
    ++result.count;
    result.largest = std::max(result.largest, ratio);
  }
  return result;
}

// By which power of two a bit divides the deviation, on average from the first to the last.
double halvings(const std::vector<Point>& points, const std::vector<int>& bits, std::size_t c) {
  const double first = median_of(points.front()[c], &Distances::flash_baseline);
  const double last = median_of(points.back()[c], &Distances::flash_baseline);
  return std::log2(first / last) / (bits.back() - bits.front());
}

ClaimTable table(const std::vector<Point>& points, const std::vector<int>& bits) {
  ClaimTable result{.columns = {"mantissa_bits"}, .rows = {}};
  for (const char* arithmetic : {"operation", "result"}) {
    for (const char* distance : {"flash_baseline", "flash_fp64", "baseline_fp64"}) {
      result.columns.push_back(fmt::format("{}_{}", arithmetic, distance));
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<std::string> row{std::to_string(bits[i])};
    for (const auto& seeds : points[i]) {
      row.push_back(scientific(median_of(seeds, &Distances::flash_baseline)));
      for (const auto distance : {&Distances::flash_exact, &Distances::baseline_exact}) {
        const bool judged = bits[i] <= kJudgedBits;
        row.push_back(judged ? scientific(median_of(seeds, distance)) : "-");
      }
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

Verdict verdict(const std::array<Rises, 2>& rises, const std::array<double, 2>& halvings) {
  if (rises[0].count == 0 && rises[1].count == 0) return Verdict::confirmed;
  const bool falls = halvings[0] > 0.5 && halvings[1] > 0.5;
  return falls ? Verdict::qualified : Verdict::refuted;
}

}  // namespace

ClaimResult mantissa_sweep(const ParallelFor& parallel_for) {
  const std::vector<int> bits = mantissa_bits();
  std::vector<Point> points(bits.size());
  parallel_for(static_cast<Index>(bits.size()), [&](Index i) {
    points[static_cast<std::size_t>(i)] = measured(bits[static_cast<std::size_t>(i)]);
  });
  const std::array<Rises, 2> up{rises(points, 0), rises(points, 1)};
  const std::array<double, 2> halved{halvings(points, bits, 0), halvings(points, bits, 1)};
  std::string text = fmt::format(
      "Medians over {} seeds of the largest difference between O of flash1 (block_kv {}) and of "
      "`standard` in the same format, and of either from the reference in fp64 (standard normal "
      "inputs, {} queries, seqlen_kv {}, head_dim {}; formats with fp64's exponents, so that only "
      "precision changes; 7 bits are bf16's, 10 fp16's, 23 fp32's). At 52 bits the reference is no "
      "more exact than the runs, and only their difference is given. ",
      kSeeds, kTile.block_kv, kRows, kKeys, kHeadDim);
  for (std::size_t c = 0; c < up.size(); ++c) {
    text += fmt::format(
        "With every {} rounded, a mantissa bit halves the difference {} times on "
        "average, and of {} steps {} raise it{}. ",
        c == 0 ? "operation" : "result", plain(halved[c]), bits.size() - 1, up[c].count,
        up[c].count == 0 ? "" : fmt::format(", by up to {}", plain(up[c].largest)));
  }
  return {table(points, bits), verdict(up, halved), text};
}

}  // namespace flashbound
