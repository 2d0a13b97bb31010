// Closed forms, the count machine and the record log say the same, per tensor, reads and writes
// apart. Three routes: a formula, a walk that multiplies, and a walk that writes every event down.
#include "core/closed_form.hpp"
#include "core/count.hpp"
#include "core/footprint.hpp"
#include "core/programs.hpp"
#include "core/record.hpp"
#include "tests/core/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

namespace flashbound {
namespace {

constexpr std::uint64_t kCases = 1500;
constexpr NumberFormat kDtypes[] = {NumberFormat::fp16, NumberFormat::fp32, NumberFormat::fp64,
                                    NumberFormat::fp8e4m3};

NumberFormat dtype_of(std::uint64_t seed) { return kDtypes[seed % 4]; }

void check_equal(const IoCount& a, const IoCount& b) {
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    CAPTURE(a.tensors[t].tensor);
    CHECK(a.tensors[t].tensor == b.tensors[t].tensor);
    CHECK(a.tensors[t].element_bytes == b.tensors[t].element_bytes);
    CHECK(to_string(a.tensors[t].read) == to_string(b.tensors[t].read));
    CHECK(to_string(a.tensors[t].written) == to_string(b.tensors[t].written));
  }
  CHECK(to_string(a.sram_peak) == to_string(b.sram_peak));
  CHECK(to_string(a.flops) == to_string(b.flops));
  CHECK(to_string(a.exponentials) == to_string(b.exponentials));
  CHECK(to_string(a.rescales_at_most) == to_string(b.rescales_at_most));
}

Bytes largest_kernel_footprint(const Program& program, const testing::RandomCase& random,
                               NumberFormat dtype, Index stages) {
  Bytes most;
  for (Index s = 0; s < sequence_count(random.problem); ++s) {
    const Schedule schedule =
        schedule_for(random.problem, random.tile, sequence(random.problem, s));
    most = std::max(most, kernel_footprint(program, schedule, dtype, stages));
  }
  return most;
}

}  // namespace

TEST_SUITE("cross.count") {
  TEST_CASE("closed form = count machine for every algorithm on random problems") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(seed);
        CAPTURE(what);
        const NumberFormat dtype = dtype_of(seed);
        check_equal(closed_form(algorithm.name, random.problem, random.tile, dtype),
                    count(algorithm.program(), random.problem, random.tile, dtype));
      }
    }
  }

  TEST_CASE("multiplying whole blocks = visiting every block") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(seed);
        CAPTURE(what);
        const Program program = algorithm.program();
        check_equal(
            count(program, random.problem, random.tile, dtype_of(seed)),
            count(program, random.problem, random.tile, dtype_of(seed), LoopWalk::every_block));
      }
    }
  }

  TEST_CASE("the bytes of the record log add up to the counts, and so does its residency") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      const Schedule schedule =
          schedule_for(random.problem, random.tile, sequence(random.problem, 0));
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(seed);
        CAPTURE(what);
        const Program program = algorithm.program();
        std::map<std::string, Bytes> read;
        std::map<std::string, Bytes> written;
        Elements peak;
        Elements last;
        record(program, schedule, dtype_of(seed), [&](const Event& event) {
          if (event.statement->op == Op::load) read[event.tensor->name] += event.bytes;
          if (event.statement->op == Op::store) written[event.tensor->name] += event.bytes;
          peak = std::max(peak, event.resident);
          last = event.resident;
        });
        const IoCount counted = count_head(program, schedule, dtype_of(seed));
        for (const TensorTraffic& tensor : counted.tensors) {
          CAPTURE(tensor.tensor);
          CHECK(to_string(read[tensor.tensor]) == to_string(tensor.read_bytes()));
          CHECK(to_string(written[tensor.tensor]) == to_string(tensor.write_bytes()));
        }
        CHECK(to_string(peak) == to_string(counted.sram_peak));
        CHECK(last == Elements{});  // nothing outlives the last kernel
      }
    }
  }

  TEST_CASE("residency is within the kernel footprint and every itemised step adds") {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      const testing::RandomCase random = testing::random_case(seed);
      for (const Algorithm& algorithm : algorithms()) {
        const std::string what = std::string(algorithm.name) + ": " + testing::describe(random);
        CAPTURE(what);
        const Program program = algorithm.program();
        const NumberFormat dtype = dtype_of(seed);
        const Footprint uniform = footprint(program, random.problem, random.tile, dtype);
        const IoCount counted = count(program, random.problem, random.tile, dtype);
        CHECK(uniform.residency == bytes_of(counted.sram_peak, byte_size(dtype)));
        for (const Bytes step : {uniform.unshared_buffers, uniform.ragged_padding,
                                 uniform.wider_elements, uniform.pipeline_stages}) {
          CHECK(step >= Bytes{});
        }
        const Footprint kernel =
            footprint(program, random.problem, random.tile, dtype, FootprintKind::kernel, 2);
        Bytes buffers;
        for (const FootprintBuffer& buffer : kernel.buffers) buffers += buffer.bytes;
        CHECK(buffers == kernel.kernel_total());
        CHECK(kernel.kernel_total() >= uniform.residency);
        CHECK(kernel.kernel_total() == largest_kernel_footprint(program, random, dtype, 2));
      }
    }
  }
}

}  // namespace flashbound
