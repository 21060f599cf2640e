// Does the emulator notice? Small kernels, each with one mistake, and their right twins. Prints what it missed and
// leaves
// with 1, or how much it checked.
#define SPLAT_EMULATED
#include "../../cuda/kernels/block.hpp"

#include <cstdio>

namespace splat::card {

int checks = 0, failures = 0;
u32 memory[4096];

std::string complaint_of(void (*kernel)(), unsigned blocks, unsigned threads, uint64_t seed) {
  emulator::machine.random = 88172645463325252ull ^ (seed * 0x9E3779B97F4A7C15ull);
  emulator::machine.preempt = seed % 2;
  try {
    emulator::launch("a test", {blocks, 1, 1}, {threads, 1, 1}, kernel);
  } catch (const emulator::Failure& failure) { return failure.what; }
  return "";
}

// `expected` empty: nothing may be found. Whatever the schedule.
void expect(const char* what, const char* expected, void (*kernel)(), unsigned blocks = 1, unsigned threads = 64) {
  for (uint64_t seed = 0; seed < 6; seed++) {
    checks++;
    const std::string found = complaint_of(kernel, blocks, threads, seed);
    if (*expected ? found.find(expected) == std::string::npos : !found.empty()) {
      failures++;
      std::printf("FAILED: %s: expected \"%s\", found \"%s\"\n", what, expected, found.c_str());
    }
  }
}

void barrier(bool there) {
  SHARED(u32, values, 64);
  values[threadIdx.x] = threadIdx.x;
  if (there)
    __syncthreads();
  else
    __syncwarp();
  store(memory, blockIdx.x * 64 + threadIdx.x, u32(values[threadIdx.x ^ 32]));
}
void warp_barrier(bool there) {
  SHARED(u32, values, 64);
  values[threadIdx.x] = threadIdx.x;
  if (there)
    __syncwarp();
  else
    (void)__ballot_sync(kAllLanes, true);  // no barrier for memory, as CUDA's rules say
  store(memory, threadIdx.x, u32(values[threadIdx.x ^ 1]));
}
void write_after_read(bool barrier_there) {
  SHARED(u32, values, 64);
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const u32 other = values[threadIdx.x ^ 33];
  if (barrier_there) __syncthreads();
  values[threadIdx.x] = other;
  store(memory, threadIdx.x, other);
}
void lanes_write_after_read(bool barrier_there) {
  SHARED(u32, values, 32);
  values[threadIdx.x] = threadIdx.x;
  __syncwarp();
  const u32 other = values[threadIdx.x ^ 5];
  if (barrier_there) __syncwarp();
  values[threadIdx.x] = other;
}
void loop(bool barrier_there) {  // shared memory used in turns: only the second turn can go wrong
  SHARED(u32, values, 64);
  for (int turn = 0; turn < 2; turn++) {
    if (barrier_there) __syncthreads();
    values[threadIdx.x] = turn;
    __syncthreads();
    store(memory, 64 * turn + threadIdx.x, u32(values[63 - threadIdx.x]));
  }
}
void counting(bool atomically) {
  SHARED(u32, counts, 4);
  if (threadIdx.x < 4) counts[threadIdx.x] = 0u;
  __syncthreads();
  if (atomically)
    count_up(counts, threadIdx.x % 4);
  else
    counts[threadIdx.x % 4] += 1u;
  __syncthreads();
  if (threadIdx.x < 4) store(memory, threadIdx.x, u32(counts[threadIdx.x]));
}

void shared_memory() {
  expect("a barrier", "", [] { barrier(true); });
  expect(
      "no barrier between warps", "race: reads what another thread writes", [] { barrier(false); }, 1);
  expect(
      "a warp's barrier", "", [] { warp_barrier(true); }, 1, 32);
  expect(
      "a shuffle is no barrier", "race: reads what another thread writes", [] { warp_barrier(false); }, 1, 32);
  expect("a barrier before overwriting", "", [] { write_after_read(true); });
  expect("overwriting what others read", "race: ", [] { write_after_read(false); });
  expect(
      "a warp's barrier before overwriting", "", [] { lanes_write_after_read(true); }, 1, 32);
  expect(
      "overwriting what lanes read", "race: ", [] { lanes_write_after_read(false); }, 1, 32);
  expect("a loop with both barriers", "", [] { loop(true); });
  expect("a loop without its first barrier", "race: ", [] { loop(false); });
  expect("counting atomically", "", [] { counting(true); });
  expect("counting without atomics", "race: ", [] { counting(false); });
  expect("two writers", "race: two threads write", [] {
    SHARED(u32, one, 1);
    one[0] = threadIdx.x;
  });
  expect("an index too far", "index 64 of 64", [] {
    SHARED(u32, values, 64);
    values[threadIdx.x + 1] = 1u;
  });
  expect("what nobody wrote", "nobody wrote", [] {
    SHARED(u32, values, 64);
    store(memory, threadIdx.x, u32(values[threadIdx.x]));
  });
  expect(
      "what the block before wrote", "nobody wrote",
      [] {
        SHARED(u32, values, 64);
        if (blockIdx.x == 0)
          values[threadIdx.x] = 1u;
        else
          store(memory, threadIdx.x, u32(values[threadIdx.x]));
      },
      2);
  expect("too much of it", "more than 48 kB", [] {
    SHARED(float, values, 12289);
    values[threadIdx.x] = 1.f;
  });
}

void global_memory() {
  expect(
      "each its own", "", [] { store(memory, thread_number(), load(memory, thread_number()) + 1u); }, 4);
  expect(
      "beyond the end", "illegal address", [] { store(memory, 4000 + thread_number(), 1u); }, 4);
  expect("misaligned", "misaligned", [] { (void)load4(reinterpret_cast<const float*>(memory) + 1, threadIdx.x); });
  expect(
      "what another block writes", "another block of this launch",
      [] {
        if (blockIdx.x)
          store(memory, threadIdx.x, 1u);
        else
          (void)load(memory, threadIdx.x);
      },
      2);
  expect(
      "two blocks write", "another block of this launch writes", [] { store(memory, threadIdx.x, blockIdx.x); }, 2);
  expect("two threads write", "race: two threads write", [] { store(memory, 0, threadIdx.x); });
  expect("a neighbour's, without a barrier", "race", [] {
    store(memory, threadIdx.x, 1u);
    (void)load(memory, threadIdx.x ^ 40);
  });
  expect("a neighbour's, behind a barrier", "", [] {
    store(memory, threadIdx.x, 1u);
    __syncthreads();
    (void)load(memory, threadIdx.x ^ 40);
  });
  expect("fetching what is written", "this launch", [] {
    (void)fetch(memory, threadIdx.x);
    store(memory, threadIdx.x, 1u);
  });
  expect(
      "counting up", "", [] { count_up_global(memory, threadIdx.x % 4); }, 3);
}

void meetings() {
  expect("all lanes meet", "", [] { store(memory, threadIdx.x, u32(__shfl_xor_sync(kAllLanes, threadIdx.x, 1))); });
  expect("lanes that left", "never comes", [] {
    if (threadIdx.x % 32 == 7) return;
    (void)__ballot_sync(kAllLanes, true);
  });
  expect("lanes at different places", "different places", [] {
    if (threadIdx.x & 1)
      (void)__ballot_sync(kAllLanes, true);
    else
      (void)__ballot_sync(kAllLanes, false);
  });
  expect("a barrier after some have left", "have left", [] {
    if (threadIdx.x == 3) return;
    __syncthreads();
  });
  expect("different barriers", "different places", [] {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  });
  expect("waiting at a warp's meeting for those at the block's", "never comes", [] {
    if (threadIdx.x & 1)
      __syncwarp();
    else
      __syncthreads();
  });
  expect("what is not uniform", "uniform", [] { (void)uniform(threadIdx.x); });
}

void sums() {
  static u64 total;
  static bool right;
  right = true;
  expect(
      "a sum", "",
      [] {
        const u64 sum = block_sum(u64(threadIdx.x));
        if (threadIdx.x == 0) total = sum;
        u32 all;
        const u32 before = block_scan(threadIdx.x, all);
        right &= all == 32640 && before == threadIdx.x * (threadIdx.x - 1) / 2;
      },
      1, 256);
  checks++;
  if (total != 32640 || !right) {
    failures++;
    std::printf("FAILED: a sum or a scan is wrong\n");
  }
}

}  // namespace splat::card

int main() {
  using namespace splat;
  emulator::add_region(card::memory, sizeof card::memory);
  emulator::mark_written(card::memory, sizeof card::memory);
  card::shared_memory();
  card::global_memory();
  card::meetings();
  card::sums();
  std::printf("%d checks, %d failures\n", card::checks, card::failures);
  return card::failures ? 1 : 0;
}
