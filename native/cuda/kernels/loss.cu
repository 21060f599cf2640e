// Pass 5: L1 and SSIM with their gradient. Both the value and the gradient are separable 11-tap windows with zero
// padding: of the images' moments first, then of SSIM's derivatives with respect to these moments. A block has 32 x 16
// pixels of one channel and what the window reaches around them.
#include "block.hpp"

namespace splat::card {

constexpr int kR = kWindowRadius, kHaloWide = kLossWide + 2 * kR, kHaloHigh = kLossHigh + 2 * kR,
              kHalo = kHaloWide * kHaloHigh;
constexpr int kMoments = 4;  // x, y, x^2 + y^2 and xy: SSIM needs the two variances only as their sum
constexpr int kMaps = 3;     // its derivatives by E[x], E[x^2] and E[xy]
constexpr float kSteady1 = 0.01f * 0.01f, kSteady2 = 0.03f * 0.03f;
constexpr int kRowsEach = kLossWide * kLossHigh / kThreads;  // pixels a thread ends with, one above the other
static_assert(kRowsEach == 2, "the window down is written for two");

struct Block {
  int x0, y0;
  size_t plane, channel;  // where the channel begins
  INLINE int x() const { return x0 + int(threadIdx.x % kLossWide); }
  INLINE int y(int i) const { return y0 + int(threadIdx.x / kLossWide) * kRowsEach + i; }
};
INLINE Block block_of(const LossArguments& a) {
  const size_t plane = size_t(a.width) * a.height;
  return {int(blockIdx.x) * kLossWide, int(blockIdx.y) * kLossHigh, plane, blockIdx.z * plane};
}
INLINE float tap(const LossArguments& a, int t) { return a.taps[t < kR ? kR - t : t - kR]; }

// Planes of the halo filtered across, then down: out[i][p] for the thread's pixel i. at(place in the halo, values).
template <int Planes, class At>
INLINE void filtered(const LossArguments& a, At at, float (*out)[Planes]) {
  SHARED(float, rows, Planes* kHaloHigh* kLossWide);
  for (int k = threadIdx.x; k < kHaloHigh * kLossWide; k += kThreads) {
    const int x = k % kLossWide, y = k / kLossWide;
    float sum[Planes] = {};
    UNROLL for (int t = 0; t <= 2 * kR; t++) {
      float v[Planes];
      at(y * kHaloWide + x + t, v);
      UNROLL for (int p = 0; p < Planes; p++) sum[p] += tap(a, t) * v[p];
    }
    UNROLL for (int p = 0; p < Planes; p++) rows[p * kHaloHigh * kLossWide + k] = sum[p];
  }
  __syncthreads();
  const int x = threadIdx.x % kLossWide, y = threadIdx.x / kLossWide * kRowsEach;
  UNROLL for (int p = 0; p < Planes; p++) {
    float upper = 0, lower = 0;
    UNROLL for (int t = 0; t <= 2 * kR + 1; t++) {
      const float v = rows[(p * kHaloHigh + y + t) * kLossWide + x];
      if (t <= 2 * kR) upper += tap(a, t) * v;
      if (t >= 1) lower += tap(a, t - 1) * v;
    }
    out[0][p] = upper;
    out[1][p] = lower;
  }
}

// SSIM of one pixel, and its derivatives by E[x], E[x^2] and E[xy] with what each brings along.
INLINE float similarity(const float* moments, float* map) {
  const float u = moments[0], v = moments[1], means = u * u + v * v, product = u * v;
  const float a = 2 * product + kSteady1, b = 2 * (moments[3] - product) + kSteady2, c = means + kSteady1,
              d = moments[2] - means + kSteady2;
  const float over = inverse(c * d), s = a * b * over, by_squares = -s * (c * over), by_product = 2 * a * over;
  map[0] = 2 * v * b * over - 2 * u * s * (d * over) - 2 * u * by_squares - v * by_product;
  map[1] = by_squares;
  map[2] = by_product;
  return s;
}

KERNEL(kThreads, loss_values, LossArguments) {
  SHARED(float2, halo, kHalo);
  const Block block = block_of(a);
  for (int k = threadIdx.x; k < kHalo; k += kThreads) {
    const int x = block.x0 + k % kHaloWide - kR, y = block.y0 + k / kHaloWide - kR;
    const bool inside = x >= 0 && y >= 0 && x < a.width && y < a.height;
    const size_t at = block.channel + size_t(y) * a.width + x;
    halo[k] = inside ? make_float2(fetch(a.render, at), fetch(a.photo, at) * (1.f / 255.f)) : make_float2(0.f, 0.f);
  }
  __syncthreads();
  float moments[kRowsEach][kMoments], l1 = 0, ssim = 0;
  filtered<kMoments>(
      a,
      [&](int k, float* v) {
        const float2 h = halo[k];
        v[0] = h.x;
        v[1] = h.y;
        v[2] = h.x * h.x + h.y * h.y;
        v[3] = h.x * h.y;
      },
      moments);
  UNROLL for (int i = 0; i < kRowsEach; i++) {
    const int x = block.x(), y = block.y(i);
    if (x >= a.width || y >= a.height) continue;
    float map[kMaps];
    const float2 h = halo[(y - block.y0 + kR) * kHaloWide + x - block.x0 + kR];
    ssim += similarity(moments[i], map);
    l1 += fabsf(h.x - h.y);
    if (!a.maps) continue;
    const size_t at = kMaps * block.channel + size_t(y) * a.width + x;
    UNROLL for (int p = 0; p < kMaps; p++) store(a.maps, at + p * block.plane, map[p]);
  }
  l1 = block_sum(l1);
  ssim = block_sum(ssim);
  const size_t number = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) {
    store(a.sums, 2 * number, l1);
    store(a.sums, 2 * number + 1, ssim);
  }
}

KERNEL(kThreads, loss_gradient, LossArguments) {
  SHARED(float, halo, kMaps* kHalo);
  const Block block = block_of(a);
  for (int k = threadIdx.x; k < kHalo; k += kThreads) {
    const int x = block.x0 + k % kHaloWide - kR, y = block.y0 + k / kHaloWide - kR;
    const bool inside = x >= 0 && y >= 0 && x < a.width && y < a.height;
    const size_t at = kMaps * block.channel + size_t(y) * a.width + x;
    UNROLL for (int p = 0; p < kMaps; p++) halo[p * kHalo + k] = inside ? fetch(a.maps, at + p * block.plane) : 0.f;
  }
  __syncthreads();
  float sums[kRowsEach][kMaps];
  filtered<kMaps>(
      a, [&](int k, float* v) { UNROLL for (int p = 0; p < kMaps; p++) v[p] = halo[p * kHalo + k]; }, sums);
  UNROLL for (int i = 0; i < kRowsEach; i++) {
    const int x = block.x(), y = block.y(i);
    if (x >= a.width || y >= a.height) continue;
    const size_t at = block.channel + size_t(y) * a.width + x;
    const float u = fetch(a.render, at), v = fetch(a.photo, at) * (1.f / 255.f),
                sign = u > v   ? 1.f
                       : u < v ? -1.f
                               : 0.f;
    store(a.gradient, at, a.ssim_weight * (sums[i][0] + 2 * u * sums[i][1] + v * sums[i][2]) + a.l1_weight * sign);
  }
}

// The sums of all blocks in one order, and the step's report. A loss that is not a number, or pairs that did not fit,
// stop this update and all that follow, until the host has looked: the model stays that of the step before.
KERNEL(kThreads, loss_total, TotalArguments) {
  double l1 = 0, ssim = 0;
  for (u32 k = threadIdx.x; k < a.blocks; k += kThreads) {
    l1 += double(fetch(a.sums, 2 * size_t(k)));
    ssim += double(fetch(a.sums, 2 * size_t(k) + 1));
  }
  l1 = block_sum(l1);
  ssim = block_sum(ssim);
  if (threadIdx.x) return;
  l1 /= a.values;
  ssim /= a.values;
  const double loss = (1 - a.ssim_weight) * l1 + a.ssim_weight * (1 - ssim);
  const u32 visible = fetch(&a.counters->visible, 0), pairs = fetch(&a.counters->pairs, 0), before = load(a.stopped, 0);
  const u32 stopped = before ? before : !(loss - loss == 0) || pairs > a.capacity ? a.step : 0;
  store(a.stopped, 0, stopped);
  store(a.report, 0, Report{l1, ssim, visible, pairs, a.step, stopped});
}

}  // namespace splat::card
