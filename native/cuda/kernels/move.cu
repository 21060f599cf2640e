// Moving rows: Morton codes of their means, and gathering them into a new array, up to date.
#include "block.hpp"
#include "settling.hpp"

namespace splat::card {

constexpr int kAxisBits = 21;
constexpr float kFarthest = 3.4028235e38f;

INLINE u64 spread(u64 v) {  // two zero bits between neighbouring bits
  v = (v | v << 32) & 0x1f00000000ffffull;
  v = (v | v << 16) & 0x1f0000ff0000ffull;
  v = (v | v << 8) & 0x100f00f00f00f00full;
  v = (v | v << 4) & 0x10c30c30c30c30c3ull;
  return (v | v << 2) & 0x1249249249249249ull;
}

INLINE void store_bounds(const MortonArguments& a, float* low, float* high) {
  UNROLL for (int k = 0; k < 3; k++) {
    const float least = block_reduce(low[k], [](float x, float y) { return fminf(x, y); });
    const float most = block_reduce(high[k], [](float x, float y) { return fmaxf(x, y); });
    if (threadIdx.x == 0) {
      store(a.bounds, blockIdx.x * 6 + k, least);
      store(a.bounds, blockIdx.x * 6 + 3 + k, most);
    }
  }
}

// Of what is finite.
KERNEL(kThreads, morton_bounds, MortonArguments) {
  float low[3] = {kFarthest, kFarthest, kFarthest}, high[3] = {-kFarthest, -kFarthest, -kFarthest};
  for (int item = 0; item < kItems; item++) {
    const u32 row = blockIdx.x * kBlockItems + item * kThreads + threadIdx.x;
    if (row >= a.count) break;
    UNROLL for (int k = 0; k < 3; k++) {
      const float v = fetch(a.means, size_t(row) * a.stride + k);
      if (is_finite(v)) {
        low[k] = fminf(low[k], v);
        high[k] = fmaxf(high[k], v);
      }
    }
  }
  store_bounds(a, low, high);
}
KERNEL(kThreads, morton_top, MortonArguments) {
  float low[3] = {kFarthest, kFarthest, kFarthest}, high[3] = {-kFarthest, -kFarthest, -kFarthest};
  for (u32 block = threadIdx.x; block < a.blocks; block += kThreads)
    UNROLL for (int k = 0; k < 3; k++) low[k] = fminf(low[k], load(a.bounds, block * 6 + k)),
                                       high[k] = fmaxf(high[k], load(a.bounds, block * 6 + 3 + k));
  store_bounds(a, low, high);
}
KERNEL(kThreads, morton_codes, MortonArguments) {
  const u32 row = thread_number();
  if (row >= a.count) return;
  constexpr float kLargest = float((1 << kAxisBits) - 1);
  u64 code = 0;
  UNROLL for (int k = 0; k < 3; k++) {
    const float low = fetch(a.bounds, k), high = fetch(a.bounds, 3 + k);
    const float scale = high > low ? __fdiv_rn(kLargest, __fsub_rn(high, low))
                                   : 0.f;  // exactly as the CPU: the order decides what rows follow each other
    const float v = __fmul_rn(__fsub_rn(fetch(a.means, size_t(row) * a.stride + k), low), scale);
    code |= spread(v > 0 ? u64(fminf(v, kLargest)) : 0) << k;  // NaN sorts first
  }
  store(a.codes, row, code);
}

// Settled on the way: nobody reads or writes the table once more for that.
INLINE float4 taken(const TakeArguments& a, size_t row, u32 k, int age) {  // of harmonics or of their moments
  const size_t at = row * a.vectors + k;
  const float4 v = fetch4(a.from, at);
  if (!age) return v;
  const float4 owed = owed_at(a.pending, age);
  if (a.part == kPartHarmonics) return settled_harmonics(a.pending, k, v, fetch4(a.moments, at), owed);
  const Decays decays = decays_of(owed);
  return faded(v, a.part == kPartFirst ? decays.first : decays.second);
}
INLINE float4 taken_moments(const TakeArguments& a, size_t row, u32 k,
                            int age) {  // of geometry: first ones, then second
  const float4 v = fetch4(a.moments, row * 6 + k);
  if (!age) return v;
  const Decays decays = decays_of(owed_at(a.pending, age));
  return k < 3 ? faded_geometry(k, v, decays.first) : faded_geometry(k - 3, v, decays.second);
}
// Children have a mean of their own and are smaller; all lose their statistics.
INLINE float4 taken_geometry(const TakeArguments& a, size_t row, u32 k, int age, u32 place) {
  float4 v = fetch4(a.from, row * 4 + k);
  if (k == 3) return make_float4(0.f, 0.f, 0.f, age ? float(a.pending.step) : v.w);
  if (age) v = settled_geometry(a.pending, k, v, fetch4(a.moments, row * 6 + k), owed_at(a.pending, age));
  if (place < a.first_child) return v;
  const float* mean = a.means + 3 * size_t(place);
  if (k == 0) v = make_float4(fetch(mean, 0), fetch(mean, 1), fetch(mean, 2), v.w - a.shrink);
  if (k == 1) {
    v.x -= a.shrink;
    v.y -= a.shrink;
  }
  return v;
}

// Thread: four floats of a new row. Fresh rows start with zero moments.
KERNEL(kThreads, take_rows, TakeArguments) {
  const size_t thread = size_t(blockIdx.x) * kThreads + threadIdx.x, row = thread / a.vectors;
  const u32 k = u32(thread % a.vectors);
  if (row >= a.count) return;
  const u32 place = fetch(a.order, row);
  const u64 source = fetch(a.sources, place);
  const u32 from = u32(source) & ~kFresh;
  const int age = int(source >> kAgeShift);
  const bool fresh = source & kFresh, geometry = a.part == kPartGeometry;
  const float4 nothing = make_float4(0.f, 0.f, 0.f, 0.f);
  if (geometry && k < 4)
    store4(a.to, row * 4 + k, taken_geometry(a, from, k, age, place));
  else if (geometry)
    store4(a.to_moments, row * 6 + k - 4, fresh ? nothing : taken_moments(a, from, k - 4, age));
  else
    store4(a.to, thread, fresh && a.part != kPartHarmonics ? nothing : taken(a, from, k, age));
}

}  // namespace splat::card
