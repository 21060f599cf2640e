// Sums over the 256 threads of a block, each in one fixed order.
#pragma once
#include "device.hpp"

namespace splat::card {

constexpr int kWarps = kThreads / 32;

// Calls join(mine, theirs) until lane 0 has what all lanes of the warp give together; then thread 0, of all warps.
// The result is right in thread 0 of the block only.
template <class T, class Join>
INLINE T block_reduce(T value, Join join) {
  SHARED(T, of_warp, kWarps);
  UNROLL for (int distance = 16; distance; distance >>= 1) value =
      join(value, T(__shfl_xor_sync(kAllLanes, value, distance)));
  __syncthreads();  // of_warp may still be read by those before
  if (lane_number() == 0) of_warp[warp_number()] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < kWarps; w++) value = join(value, T(of_warp[w]));
  return value;
}
template <class T>
INLINE T block_sum(T value) {
  return block_reduce(value, [](T a, T b) { return a + b; });
}

// The sum over all threads before this one; total is that of all, in every thread.
template <class T>
INLINE T block_scan(T value, T& total) {
  SHARED(T, of_warp, kWarps);
  T inclusive = value;
  UNROLL for (int distance = 1; distance < 32; distance <<= 1) {
    const T other = __shfl_up_sync(kAllLanes, inclusive, distance);
    if (lane_number() >= distance) inclusive += other;
  }
  __syncthreads();
  if (lane_number() == 31) of_warp[warp_number()] = inclusive;
  __syncthreads();
  T before = 0;
  total = 0;
  UNROLL for (int w = 0; w < kWarps; w++) {
    const T sum = of_warp[w];
    before += w < warp_number() ? sum : 0;
    total += sum;
  }
  return before + inclusive - value;
}

}  // namespace splat::card
