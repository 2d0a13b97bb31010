// One Schedule for host and device: a kernel walks the ranges of random schedules, writes down the
// blocks it met, and the host compares them with its own walk. Exit 77 where there is no device.
#include "core/schedule.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using flashbound::Block;
using flashbound::Index;
using flashbound::Schedule;

constexpr int kSchedules = 4096;
constexpr int kWordsMax = 1 << 14;  // of one schedule's log; more is an error of this test
constexpr int kSkipped = 77;

// A schedule and where its block mask begins in one shared array of cells (-1: none).
struct Case {
  Schedule schedule;
  std::int64_t cells_begin;
};

// Appends every answer of the schedule to `log`; returns the words written.
FLASHBOUND_HD int walk(const Schedule& schedule, std::int64_t* log) {
  int words = 0;
  const auto put = [&](std::int64_t word) {
    if (words < kWordsMax) log[words] = word;
    ++words;
  };
  const auto put_range = [&](const flashbound::BlockRange& range) {
    for (const Block block : range) {
      put(block.index);
      put(block.span.begin);
      put(block.span.end);
      put(static_cast<std::int64_t>(block.coverage));
    }
    put(-1);
    put(range.count());
  };
  for (Index i = 0; i < schedule.q_block_count(); ++i) {
    put_range(schedule.kv_blocks(i));
    for (Index s = 0; s < schedule.tile.num_splits; ++s) put_range(schedule.kv_blocks(i, s));
  }
  for (Index j = 0; j < schedule.kv_block_count(); ++j) {
    put_range(schedule.q_blocks(j));
    put_range(schedule.q_blocks_starting_at(j));
    put_range(schedule.q_blocks_continuing_at(j));
  }
  put_range(schedule.q_blocks_without_keys());
  return words;
}

__global__ void walk_all(const Case* cases, const std::uint8_t* cells, std::int64_t* logs,
                         int* words) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index >= kSchedules) return;
  Schedule schedule = cases[index].schedule;
  if (cases[index].cells_begin >= 0) schedule.mask.blocks.cells = cells + cases[index].cells_begin;
  words[index] = walk(schedule, logs + static_cast<std::int64_t>(index) * kWordsMax);
}

Case random_case(std::mt19937_64& engine, std::vector<std::uint8_t>& cells) {
  const auto between = [&](Index low, Index high) {
    return low + static_cast<Index>(engine() % static_cast<std::uint64_t>(high - low + 1));
  };
  Case result{};
  result.cells_begin = -1;
  Schedule& s = result.schedule;
  s.tile = {between(1, 9), between(1, 9), 1, between(1, 3)};
  s.shape = {between(0, 30), between(0, 30), 8, 8};
  if (between(0, 1) != 0) s.mask.window_left = between(-1, 12);
  if (between(0, 1) != 0) s.mask.window_right = between(-1, 12);
  if (between(0, 2) == 0 && s.shape.seqlen_q > 0 && s.shape.seqlen_kv > 0) {
    flashbound::BlockMaskView& blocks = s.mask.blocks;
    blocks.block_q = between(1, 5);
    blocks.block_kv = between(1, 5);
    blocks.cols = flashbound::Partition{s.shape.seqlen_kv, blocks.block_kv}.count();
    const Index rows = flashbound::Partition{s.shape.seqlen_q, blocks.block_q}.count();
    result.cells_begin = static_cast<std::int64_t>(cells.size());
    for (Index c = 0; c < rows * blocks.cols; ++c) cells.push_back(between(0, 2) == 0 ? 0 : 1);
  }
  return result;
}

void require(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
T* to_device(const std::vector<T>& host) {
  T* device = nullptr;
  require(cudaMalloc(&device, (host.size() + 1) * sizeof(T)), "cudaMalloc");
  require(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  return device;
}

// Schedules whose log differs from the host's.
int mismatches(const std::vector<Case>& cases, const std::vector<std::uint8_t>& cells,
               const std::vector<std::int64_t>& logs, const std::vector<int>& words) {
  int wrong = 0;
  std::vector<std::int64_t> expected(kWordsMax);
  for (std::size_t index = 0; index < cases.size(); ++index) {
    Schedule schedule = cases[index].schedule;
    if (cases[index].cells_begin >= 0) {
      schedule.mask.blocks.cells = cells.data() + cases[index].cells_begin;
    }
    const int count = walk(schedule, expected.data());
    if (count > kWordsMax) {
      std::fprintf(stderr, "a log of %d words does not fit %d\n", count, kWordsMax);
      std::exit(1);
    }
    bool same = count == words[index];
    for (int w = 0; same && w < count; ++w) {
      same = logs[index * kWordsMax + static_cast<std::size_t>(w)] ==
             expected[static_cast<std::size_t>(w)];
    }
    wrong += same ? 0 : 1;
  }
  return wrong;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no CUDA device");
    return kSkipped;
  }
  std::mt19937_64 engine(20261201);
  std::vector<std::uint8_t> cells;
  std::vector<Case> cases;
  for (int index = 0; index < kSchedules; ++index) cases.push_back(random_case(engine, cells));

  const Case* device_cases = to_device(cases);
  const std::uint8_t* device_cells = to_device(cells);
  std::vector<std::int64_t> logs(static_cast<std::size_t>(kSchedules) * kWordsMax);
  std::vector<int> words(kSchedules);
  std::int64_t* device_logs = to_device(logs);
  int* device_words = to_device(words);
  walk_all<<<kSchedules / 128, 128>>>(device_cases, device_cells, device_logs, device_words);
  require(cudaGetLastError(), "launch");
  require(
      cudaMemcpy(logs.data(), device_logs, logs.size() * sizeof(logs[0]), cudaMemcpyDeviceToHost),
      "cudaMemcpy");
  require(cudaMemcpy(words.data(), device_words, words.size() * sizeof(words[0]),
                     cudaMemcpyDeviceToHost),
          "cudaMemcpy");

  const int wrong = mismatches(cases, cells, logs, words);
  std::printf("%d schedules walked on the device, %d differ from the host\n", kSchedules, wrong);
  return wrong == 0 ? 0 : 1;
}
