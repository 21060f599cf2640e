// Pass 2: scans, and a stable radix sort by digits of nine bits. Counts first, then places: there is one result,
// whoever
// runs when.
#include "block.hpp"

namespace splat::card {

// ---- scan: sums of blocks, their scan by one block, then the blocks' own -----------------------------------------
INLINE u32 scan_count(const ScanArguments& a) { return a.count ? min(fetch(a.count, 0), a.limit) : a.limit; }
INLINE u32 scan_value(const ScanArguments& a, u32 count, u32 i) {
  return i < count ? load(a.values, a.order ? fetch(a.order, i) : i) >> a.shift & a.mask : 0;
}

KERNEL(kThreads, scan_sums, ScanArguments) {
  const u32 count = scan_count(a), base = blockIdx.x * kBlockItems + threadIdx.x * kItems;
  u32 sum = 0;
  UNROLL for (int k = 0; k < kItems; k++) sum += scan_value(a, count, base + k);
  sum = block_sum(sum);
  if (threadIdx.x == 0) store(a.sums, blockIdx.x, sum);
}

KERNEL(kThreads, scan_top, ScanArguments) {
  u32 carry = 0;
  for (u32 base = 0; base < a.blocks; base += kThreads) {
    const u32 i = base + threadIdx.x;
    u32 all;
    const u32 before = block_scan(i < a.blocks ? load(a.sums, i) : 0u, all);
    if (i < a.blocks) store(a.sums, i, carry + before);
    carry += all;
  }
  if (a.total && threadIdx.x == 0) store(a.total, 0, carry);
}

// `out` may be `values`: each thread has read its own before it writes.
KERNEL(kThreads, scan_apply, ScanArguments) {
  const u32 count = scan_count(a), base = blockIdx.x * kBlockItems + threadIdx.x * kItems;
  u32 value[kItems], all, sum = 0;
  UNROLL for (int k = 0; k < kItems; k++) sum += value[k] = scan_value(a, count, base + k);
  u32 before = fetch(a.sums, blockIdx.x) + block_scan(sum, all);
  UNROLL for (int k = 0; k < kItems; k++) {
    if (base + k < count) store(a.out, base + k, before);
    before += value[k];
  }
}

// ---- sort --------------------------------------------------------------------------------------------------------
template <class Key>
INLINE u32 sort_count(const SortArguments<Key>& a) {
  return a.count ? min(fetch(a.count, 0), a.limit) : a.limit;
}
template <class Key>
INLINE u32 digit_of(Key key, u32 shift) {
  return u32(key >> shift) & (kDigits - 1);
}

template <class Key>
INLINE void count_digits(const SortArguments<Key>& a) {
  SHARED(u32, histogram, kDigits);
  for (u32 d = threadIdx.x; d < kDigits; d += kThreads) histogram[d] = 0u;
  __syncthreads();
  const u32 count = sort_count(a), base = blockIdx.x * kBlockItems + threadIdx.x;
  for (int k = 0; k < kItems; k++) {
    const u32 i = base + k * kThreads;
    if (i < count) count_up(histogram, digit_of(fetch(a.keys, i), a.shift));
  }
  __syncthreads();
  for (u32 d = threadIdx.x; d < kDigits; d += kThreads)
    store(a.counts, size_t(d) * a.blocks + blockIdx.x, u32(histogram[d]));
}

// Lanes that have a key, with the same digit, by one ballot a bit.
INLINE u32 lanes_alike(u32 digit, bool valid) {
  u32 alike = __ballot_sync(kAllLanes, valid);
  UNROLL for (int b = 0; b < kDigitBits; b++) {
    const bool bit = digit >> b & 1;
    const u32 set = __ballot_sync(kAllLanes, bit);
    alike &= bit ? set : ~set;
  }
  return alike;
}

// A warp takes 256 keys that follow each other, 32 at a time, and counts those of each digit it has met; ranks by
// ballots,
// so that the order never depends on who comes first.
template <class Key>
INLINE void scatter(const SortArguments<Key>& a) {
  SHARED(u32, met, kWarps * kDigits);
  const int lane = lane_number(), mine = warp_number() * kDigits;
  const u32 count = sort_count(a), base = blockIdx.x * kBlockItems + warp_number() * 32 * kItems + lane;
  for (u32 k = threadIdx.x; k < kWarps * kDigits; k += kThreads) met[k] = 0u;
  __syncthreads();
  Key key[kItems];
  u32 ranks[kItems / 2] = {};  // within the warp's 256 keys, two to a register: else the scarcest of them spill
  UNROLL for (int k = 0; k < kItems; k++) {
    const bool valid = base + k * 32 < count;
    key[k] = valid ? fetch(a.keys, base + k * 32) : Key(0);
    const u32 digit = digit_of(key[k], a.shift), alike = lanes_alike(digit, valid);
    const u32 rank = met[mine + digit] + __popc(alike & ((1u << lane) - 1));
    ranks[k / 2] |= rank << (k & 1) * 16;
    __syncwarp();
    if (valid && (alike >> lane) == 1u) met[mine + digit] = rank + 1;  // the last of its kind
    __syncwarp();
  }
  __syncthreads();
  for (u32 d = threadIdx.x; d < kDigits; d += kThreads) {  // from how many to where the warps' first ones go
    u32 before = fetch(a.counts, size_t(d) * a.blocks + blockIdx.x);
    UNROLL for (int w = 0; w < kWarps; w++) {
      const u32 here = met[w * kDigits + d];
      met[w * kDigits + d] = before;
      before += here;
    }
  }
  __syncthreads();
  UNROLL for (int k = 0; k < kItems; k++) {
    const u32 i = base + k * 32;
    if (i >= count) continue;
    const u32 at = met[mine + digit_of(key[k], a.shift)] + (ranks[k / 2] >> (k & 1) * 16 & 0xffff);
    store(a.new_keys, at, key[k]);
    store(a.new_values, at, a.values ? fetch(a.values, i) : i);
  }
}

KERNEL(kThreads, radix_count, SortArguments<u32>) { count_digits(a); }
KERNEL(kThreads, radix_scatter, SortArguments<u32>) { scatter(a); }
KERNEL(kThreads, radix_count_wide, SortArguments<u64>) { count_digits(a); }
KERNEL(kThreads, radix_scatter_wide, SortArguments<u64>) { scatter(a); }

}  // namespace splat::card
