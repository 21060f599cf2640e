// Radix select: the element of a given rank among 64-bit keys or floats, exactly, digit by digit from the highest
// one; and gof's
// quantile, which interpolates between two of them. Nothing happens unless the state says that something is selected.
#include "block.hpp"

namespace splat::card {

INLINE u64 key_of(const SelectArguments& a, u32 i) {
  return a.values ? u64(__float_as_uint(fetch(a.values, i))) << 32 : fetch(a.keys, i);
}
INLINE double value_of(u64 key) { return double(__uint_as_float(u32(key >> 32))); }
INLINE bool selects(const GrowthState* state) { return fetch(&state->selecting, 0) == kSelectAmong; }

// How often each digit occurs among the keys that agree with what was found so far.
KERNEL(kThreads, select_count, SelectArguments) {
  SHARED(u32, histogram, kSelectDigits);
  if (!selects(a.state)) return;
  const u64 prefix = fetch(&a.state->prefix, 0), mask = fetch(&a.state->mask, 0);
  histogram[threadIdx.x] = 0u;
  __syncthreads();
  for (int k = 0; k < kItems; k++) {
    const u32 i = blockIdx.x * kBlockItems + k * kThreads + threadIdx.x;
    if (i >= a.count) break;
    const u64 key = key_of(a, i);
    if (key != kNoKey && (key & mask) == prefix) count_up(histogram, u32(key >> a.shift) & (kSelectDigits - 1));
  }
  __syncthreads();
  store(a.digit_counts, size_t(threadIdx.x) * a.blocks + blockIdx.x, u32(histogram[threadIdx.x]));
}

// The digit in which the rank lies. Thread: one digit.
KERNEL(kThreads, select_pick, SelectArguments) {
  if (load(&a.state->selecting, 0) != kSelectAmong) return;
  const u64 rank = load(&a.state->rank, 0);
  u32 here = 0, all;
  for (u32 block = 0; block < a.blocks; block++) here += fetch(a.digit_counts, size_t(threadIdx.x) * a.blocks + block);
  const u32 before = block_scan(here, all);  // its barriers also separate reading the state from writing it
  if (!(before <= rank && rank < u64(before) + here)) return;
  GrowthState* state = a.state;
  store(&state->prefix, 0, load(&state->prefix, 0) | u64(threadIdx.x) << a.shift);
  store(&state->mask, 0, load(&state->mask, 0) | u64(kSelectDigits - 1) << a.shift);
  store(&state->rank, 0, rank - before);
  store(&state->below, 0, load(&state->below, 0) + before);
  store(&state->equal, 0, u64(here));
}

// The smallest key above the one found, of each block.
KERNEL(kThreads, select_next, SelectArguments) {
  if (!selects(a.state)) return;
  const u64 found = fetch(&a.state->prefix, 0);
  u64 least = kNoKey;
  for (int k = 0; k < kItems; k++) {
    const u32 i = blockIdx.x * kBlockItems + k * kThreads + threadIdx.x;
    if (i >= a.count) break;
    const u64 key = key_of(a, i);
    if (key > found && key < least) least = key;
  }
  least = block_reduce(least, [](u64 x, u64 y) { return x < y ? x : y; });
  if (threadIdx.x == 0) store(a.least, blockIdx.x, least);
}

// As quantile() in densify/adaptive.py: linear between the elements on both sides of the position.
KERNEL(kThreads, quantile_level, SelectArguments) {
  u64 least = kNoKey;
  for (u32 k = threadIdx.x; k < a.blocks; k += kThreads) {
    const u64 other = fetch(a.least, k);
    if (other < least) least = other;
  }
  least = block_reduce(least, [](u64 x, u64 y) { return x < y ? x : y; });
  if (threadIdx.x) return;
  const double position = load(&a.state->position, 0), low = floor(position);
  const u64 found = load(&a.state->prefix, 0), rank = u64(low);
  const bool same = rank + 1 < load(&a.state->below, 0) + load(&a.state->equal, 0) || rank + 1 >= a.count;
  const double below = value_of(found), above = value_of(same ? found : least);
  store(&a.state->level, 0, __dadd_rn(below, __dmul_rn(__dadd_rn(above, -below), __dadd_rn(position, -low))));
}

}  // namespace splat::card
