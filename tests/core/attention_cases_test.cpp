// Every case of attention_cases.hpp against the reference, one test an id.
#include "tests/core/attention_cases.hpp"

#include "core/errors.hpp"
#include "tests/core/one_head.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/mman.h>

TEST_SUITE_BEGIN("core.attention_cases");

namespace flashbound {
namespace {

using testing::one_head;

void check(const std::string& id) {
  Index cases = 0;
  for (const testing::CaseEntry& entry : testing::attention_cases()) {
    if (entry.id != id) continue;
    for (const testing::AttentionCase& c : entry.build()) {
      ++cases;
      CAPTURE(entry.title);
      CAPTURE(cases);
      validate(c.problem, Emptiness::allowed);
      for (const std::string& failure : failures(c, testing::reference_subject())) {
        FAIL_CHECK(failure);
      }
    }
  }
  CHECK(cases > 0);
}

TEST_CASE("A1: rows that are masked whole give 0 and -inf") { check("A1"); }
TEST_CASE("A2: a NaN in a masked key does not leak") { check("A2"); }
TEST_CASE("A3: one huge logit gives its value") { check("A3"); }
TEST_CASE("A4: sequences beyond 16-bit indices") { check("A4"); }
TEST_CASE("A5: 49999 keys") { check("A5"); }
TEST_CASE("A6: a batch beyond 65535") { check("A6"); }
TEST_CASE("A7: ALiBi over 32 heads of 8192 keys") { check("A7"); }
TEST_CASE("A9: every sequence of a batch is written") { check("A9"); }
TEST_CASE("A10: a block-diagonal mask equals separate runs") { check("A10"); }
TEST_CASE("A11: packed queries without keys give 0 and -inf") { check("A11"); }
TEST_CASE("A12: inputs of three standard deviations stay finite") { check("A12"); }
TEST_CASE("A13: a packed sequence without queries is passed over") { check("A13"); }
TEST_CASE("A14: windows as long as the sequence equal causal") { check("A14"); }
TEST_CASE("A18: packed lengths of 0 and 1 with grouped heads") { check("A18"); }
TEST_CASE("A19: no batch and no queries give an empty output") { check("A19"); }
TEST_CASE("A20: keys without queries between packed sequences") { check("A20"); }
TEST_CASE("A21: no keys give 0 and -inf") { check("A21"); }
TEST_CASE("A22: lse of no keys is minus and not plus infinity") { check("A22"); }
TEST_CASE("A23: query head h reads key head h / ratio") { check("A23"); }
TEST_CASE("A24: ALiBi distances are the same packed and alone") { check("A24"); }
TEST_CASE("A25: causal alignment is bottom-right") { check("A25"); }
TEST_CASE("A26: softcap c is c tanh(s/c)") { check("A26"); }
TEST_CASE("A29: head_dim 72 and 104") { check("A29"); }
TEST_CASE("A30: queries without keys and empty parts are neutral") { check("A30"); }
TEST_CASE("A31: ALiBi with 12 and 40 heads") { check("A31"); }
TEST_CASE("A32: padding between packed sequences is ignored") { check("A32"); }
TEST_CASE("A33: causal output is not zero") { check("A33"); }
TEST_CASE("A34: without a causal mask early queries see late keys") { check("A34"); }
TEST_CASE("A36: a window of W tokens is window_left = W - 1") { check("A36"); }
TEST_CASE("A37: a NaN logit stays a NaN") { check("A37"); }
TEST_CASE("A38: 65536 large values are averaged and not summed away") { check("A38"); }
TEST_CASE("A39: a mask is minus infinity and not a large number") { check("A39"); }
TEST_CASE("A41: grouped heads with head_dim 128") { check("A41"); }
TEST_CASE("A43: equal keys give the mean and lse = s + ln N") { check("A43"); }
TEST_CASE("A44: one huge key at the end gives its value") { check("A44"); }
TEST_CASE("A45: a hundred thousand small keys after a huge one still count") { check("A45"); }
TEST_CASE("A46: negative zeros are zeros") { check("A46"); }
TEST_CASE("A47: subnormal inputs are not flushed") { check("A47"); }
TEST_CASE("A48: one key gives its value") { check("A48"); }
TEST_CASE("A49: one query sees all keys under a causal mask") { check("A49"); }
TEST_CASE("A50: lengths around block edges") { check("A50"); }
TEST_CASE("A51: head_dim of every kind and unlike head_dim_v") { check("A51"); }
TEST_CASE("A52: 131072 equal values give that value") { check("A52"); }
TEST_CASE("A53: maxima that rise at every key or never") { check("A53"); }
TEST_CASE("S-window: windows are inclusive and aligned bottom-right") { check("S-window"); }
TEST_CASE("S-block-mask: a block mask and a window must both allow a pair") {
  check("S-block-mask");
}
TEST_CASE("S-nan: a NaN reaches the rows and columns that use it") { check("S-nan"); }
TEST_CASE("S-alibi: the bias falls on both sides of the diagonal") { check("S-alibi"); }
TEST_CASE("S-sink: a sink joins the denominator and lse alone") { check("S-sink"); }
TEST_CASE("S-scale: any finite scale is legal") { check("S-scale"); }
TEST_CASE("S-lse: lse is a natural logarithm") { check("S-lse"); }

TEST_CASE("A15 A40: what has no meaning is rejected by name") {
  Index rejected = 0;
  for (const testing::RejectedCase& c : testing::rejected_cases()) {
    CAPTURE(c.id);
    std::string message;
    try {
      validate(c.problem, Emptiness::allowed);
    } catch (const ConfigError& error) {
      message = error.what();
    }
    CHECK(message.starts_with(c.field + " = "));
    ++rejected;
  }
  CHECK(rejected >= 4);
}

TEST_CASE("every case has a test of its own") {
  std::ifstream file(FLASHBOUND_SOURCE_DIR "/tests/core/attention_cases_test.cpp");
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  for (const testing::CaseEntry& entry : testing::attention_cases()) {
    CAPTURE(entry.id);
    CHECK(source.find("TEST_CASE(\"" + std::string(entry.id) + ":") != std::string::npos);
  }
}

TEST_CASE("A52: the reference sums 131072 equal weights without any rounding") {
  Problem p = one_head({1, 131072, 1, 1});
  OwnedInputs inputs = normal_inputs(p, 52);
  testing::fill(inputs.k, 0);
  testing::fill(inputs.v, 1);
  CHECK(reference(p, inputs.view()).o.elements[0] == 1);
}

// Address space without memory behind it until it is touched.
class SparseMemory {
 public:
  explicit SparseMemory(std::size_t elements)
      : bytes_(elements * sizeof(double)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseMemory() {
    if (present()) munmap(memory_, bytes_);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  bool present() const { return memory_ != MAP_FAILED; }
  double* data() const { return static_cast<double*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_;
};

TEST_CASE("A16: batches 2^30 elements apart are told apart") {
  const Index stride = Index{1} << 30;
  Problem p = one_head({2, 5, 3, 3});
  p.batch = 3;  // the third begins at 2^31 elements
  const SparseMemory memory(static_cast<std::size_t>(2 * stride + 100));
  if (!memory.present()) {
    MESSAGE("not checked: this machine grants no 16 GiB of address space");
    return;
  }
  const OwnedInputs inputs = normal_inputs(p, 16);
  Inputs apart = inputs.view();
  const auto dense = inputs.k.view();
  const TensorView<double> far{memory.data(), dense.shape, {stride, 15, 3, 1}};
  for (Index b = 0; b < 3; ++b) {
    for (Index j = 0; j < 5; ++j) {
      for (Index c = 0; c < 3; ++c) far(b, 0, j, c) = dense(b, 0, j, c);
    }
  }
  apart.k = {far.data, far.shape, far.strides};
  CHECK(reference(p, apart).o.elements == reference(p, inputs.view()).o.elements);
}

TEST_CASE("A17: part of a longer cache equals its copy and the rest is never read") {
  const Index cache = 2000;
  Problem whole = one_head({1, cache, 4, 4});
  whole.num_heads_q = whole.num_heads_kv = 3;
  Problem p = whole;
  p.seqlen_kv = 310;
  const OwnedInputs inputs = normal_inputs(whole, 17);
  OwnedInputs copy{inputs.q, Tensor<double>({1, 3, 310, 4}), Tensor<double>({1, 3, 310, 4})};
  OwnedInputs cached = inputs;
  for (Index h = 0; h < 3; ++h) {
    for (Index j = 0; j < cache; ++j) {
      for (Index c = 0; c < 4; ++c) {
        double& k = cached.k.view()(0, h, j, c);
        double& v = cached.v.view()(0, h, j, c);
        if (j < 310) {
          copy.k.view()(0, h, j, c) = k;
          copy.v.view()(0, h, j, c) = v;
        } else {
          k = v = std::nan("");
        }
      }
    }
  }
  Inputs sliced = static_cast<const OwnedInputs&>(cached).view();
  sliced.k.shape[2] = sliced.v.shape[2] = 310;
  const Attention from_cache = reference(p, sliced);
  const Attention from_copy = reference(p, copy.view());
  CHECK(from_cache.o.elements == from_copy.o.elements);
  CHECK(from_cache.lse.elements == from_copy.lse.elements);
}

}  // namespace
}  // namespace flashbound

TEST_SUITE_END();
