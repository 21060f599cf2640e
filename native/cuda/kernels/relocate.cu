// 3DGS-MCMC's relocation: faint rows make room for copies of opaque ones, drawn in proportion to opacity. The same
// rules and
// draws as densify/strategies/mcmc.py, which is its twin. Weights are whole numbers: their sums have no order.
#include "block.hpp"
#include "projection.hpp"
#include "random.hpp"

namespace splat::card {

constexpr double kWeightOfOne = 4294967296.0;  // an opacity of 1
constexpr double kHighestOpacity = 1 - 1e-6;

KERNEL(kThreads, relocate_look, RelocateArguments) {
  const u32 row = thread_number();
  if (row >= a.count) return;
  const Row g = load_row(a.geometry, row);
  const bool lives = !is_faint(g.v, a.harmonics, row, a.lowest_logit);
  store(a.flags, row, lives ? 1u : 0u);
  store(a.times, row, 0u);
  store(a.weights, row, lives ? u64(rint(sigmoid(g.v[kOpacityLogit]) * kWeightOfOne)) : 0);
}

// ---- sums of weights, each with itself ---------------------------------------------------------------------------
KERNEL(kThreads, wide_scan_sums, WideScanArguments) {
  u64 sum = 0;
  for (int k = 0; k < kItems; k++) {
    const u32 i = blockIdx.x * kBlockItems + threadIdx.x * kItems + k;
    if (i < a.count) sum += fetch(a.values, i);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) store(a.sums, blockIdx.x, sum);
}
KERNEL(kThreads, wide_scan_top, WideScanArguments) {
  u64 carry = 0;
  for (u32 base = 0; base < a.blocks; base += kThreads) {
    const u32 i = base + threadIdx.x;
    u64 all;
    const u64 before = block_scan(i < a.blocks ? load(a.sums, i) : 0ull, all);
    if (i < a.blocks) store(a.sums, i, carry + before);
    carry += all;
  }
}
KERNEL(kThreads, wide_scan_apply, WideScanArguments) {
  const u32 base = blockIdx.x * kBlockItems + threadIdx.x * kItems;
  u64 value[kItems], sum = 0, all;
  UNROLL for (int k = 0; k < kItems; k++) sum += value[k] = base + k < a.count ? load(a.values, base + k) : 0;
  u64 before = fetch(a.sums, blockIdx.x) + block_scan(sum, all);
  UNROLL for (int k = 0; k < kItems; k++) {
    before += value[k];
    if (base + k < a.count) store(a.values, base + k, before);
  }
}

// ---- copies ------------------------------------------------------------------------------------------------------
INLINE void place_copy(const RelocateArguments& a, u32 at, u32 row, u32 fresh) {
  store(a.sources, at, u64(row | fresh));
  UNROLL for (int k = 0; k < 3; k++)
      store(a.means, 3 * size_t(at) + k, fetch(a.geometry, size_t(row) * kGeometryWidth + kMean + k));
}

// The first row whose sum of weights is above the draw; rows that do not live add nothing and are never the first.
INLINE u32 row_at(const RelocateArguments& a, u64 draw) {
  u32 low = 0, high = a.count - 1;
  while (low < high) {
    const u32 middle = low + (high - low) / 2;
    if (fetch(a.weights, middle) > draw)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Thread: one copy. Counts are whole numbers too: whoever comes first, they are the same.
KERNEL(kThreads, relocate_draw, RelocateArguments) {
  const u32 i = thread_number();
  if (i >= a.copies) return;
  const u64 total = fetch(a.weights, a.count - 1);
  const double high = random_bits(i, a.keys[0], a.keys[1]) >> 5, low = random_bits(i, a.keys[0], a.keys[2]) >> 6;
  const u64 draw = u64((high * 67108864.0 + low) / 9007199254740992.0 * double(total));
  const u32 row = row_at(a, draw < total ? draw : total - 1);
  count_up_global(a.times, row);
  place_copy(a, a.live + i, row, kFresh);
}
KERNEL(kThreads, relocate_keep, RelocateArguments) {
  const u32 row = thread_number();
  if (row < a.count && fetch(a.flags, row)) place_copy(a, fetch(a.live_before, row), row, 0);
}

// N Gaussians in one place look like the one they come from if each has the opacity o' and all scales times r:
//     (1 - o')^N = 1 - o,   r = o / sum over k = 1 ... N of  C(N, k) (-1)^(k - 1) o'^k / sqrt(k)
KERNEL(kThreads, relocate_share, RelocateArguments) {
  const size_t row = thread_number();
  if (row >= a.count) return;
  const u32 copies = fetch(a.times, row);
  if (!copies) return;
  const int number = min(int(copies) + 1, kMostTogether);
  const size_t at = row * kGeometryWidth;
  const double opacity = fmin(sigmoid(load(a.geometry, at + kOpacityLogit)), kHighestOpacity),
               share = -expm1(log1p(-opacity) / number);
  double total = 0, power = share;
  for (int k = 0; k < number; k++, power *= share)
    total += power * fetch(a.coefficients, size_t(number) * kMostTogether + k);
  const double lowest = fmax(share, a.lowest_opacity), shrink = log(opacity / total);
  store(a.geometry, at + kOpacityLogit, float(log(lowest) - log1p(-lowest)));
  for (int j = kLogScale; j < kLogScale + 3; j++) store(a.geometry, at + j, load(a.geometry, at + j) + float(shrink));
}

}  // namespace splat::card
